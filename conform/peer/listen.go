package peer

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A Listener plays a script on every connection that comes.
type Listener struct {
	ln    net.Listener
	plays sync.WaitGroup
	mu    sync.Mutex
	errs  []error
}

// Listen listens on a TCP address, such as "127.0.0.1:0", and has play play each connection in a goroutine of its own.
// After play the connection is closed as by [Conn.Close].
func Listen(ctx context.Context, addr string, play func(*Conn) error) (*Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &Listener{ln: ln}
	l.plays.Go(func() { l.acceptAll(play) })
	return l, nil
}

func (l *Listener) acceptAll(play func(*Conn) error) {
	for {
		conn, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.plays.Go(func() {
			c := New(conn)
			err := play(c)
			closed := c.Close()
			if err == nil {
				err = closed
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errs = append(l.errs, err)
		})
	}
}

// Addr returns the address listened on.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Close stops listening, waits until all scripts have ended, and returns their errors, joined.
func (l *Listener) Close() error {
	_ = l.ln.Close()
	l.plays.Wait()
	return errors.Join(l.errs...)
}
