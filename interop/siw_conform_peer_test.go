//go:build interop

package interop_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A guestInitiator is rping -c in the guest, started for each connection.
type guestInitiator struct {
	*Guest
	ln      net.Listener
	came    chan net.Conn // by the listener
	script  string
	running *guestShell
}

// A guestShell is a script that runs in the guest.
type guestShell struct {
	conn net.Conn
	pid  string
	done chan struct{}
}

func listenForGuest(t *testing.T, g *Guest) *guestInitiator {
	t.Helper()
	ln, port, err := g.listenConn(t.Context())
	testrig.Must(t, err)
	p := &guestInitiator{Guest: g, ln: ln, came: make(chan net.Conn)}
	p.script = rpingFrom(port, "-C 1")
	go p.accept()
	t.Cleanup(func() {
		p.Release()
		ln.Close()
		p.drain()
	})
	return p
}

// accept brings the connections to who waits for them, until the listener is closed.
func (p *guestInitiator) accept() {
	defer close(p.came)
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.came <- c
	}
}

// Connect starts rping anew and waits for its connection. Those of the last one are
// closed. Now and then rping hangs before it connects, and is started once more.
func (p *guestInitiator) Connect(ctx context.Context) (conn net.Conn, err error) {
	for range 3 {
		if conn, err = p.tryConnect(ctx); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (p *guestInitiator) tryConnect(ctx context.Context) (net.Conn, error) {
	p.Release()
	p.drain()
	conn, first, err := p.shell(p.script)
	if err != nil {
		return nil, err
	}
	p.running = &guestShell{conn, strings.TrimPrefix(strings.TrimSpace(first), "RIG-PID "), make(chan struct{})}
	go p.running.run()
	ctx, cancel := context.WithTimeout(ctx, 7*time.Second)
	defer cancel()
	return p.Again(ctx)
}

// A patientConn waits a moment between what it has received and what it sends: siw
// answers a zero-length Read by the bytes of a Send that it has not completed yet, or
// not, as it happens.
type patientConn struct {
	halfConn
	received bool
}

// A halfConn is what both TCPs have.
type halfConn interface {
	net.Conn
	CloseWrite() error
}

const patience = 30 * time.Millisecond

func (c *patientConn) Read(b []byte) (int, error) {
	n, err := c.halfConn.Read(b)
	c.received = c.received || n > 0
	return n, err
}

func (c *patientConn) Write(b []byte) (int, error) {
	if c.received {
		time.Sleep(patience)
	}
	c.received = false
	return c.halfConn.Write(b)
}

// Reset ends the connection by a RST, which each TCP does in a way of its own.
func (c *patientConn) Reset() error { return script.NewLink(c.halfConn).Reset() }

func (s *guestShell) run() {
	defer close(s.done)
	io.Copy(io.Discard, s.conn)
}

// Again waits for another connection.
func (p *guestInitiator) Again(ctx context.Context) (net.Conn, error) {
	select {
	case c, ok := <-p.came:
		if !ok {
			return nil, net.ErrClosed
		}
		return &patientConn{halfConn: c.(halfConn)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// drain closes the connections that have come and nobody has waited for.
func (p *guestInitiator) drain() {
	for late := time.After(10 * time.Millisecond); ; {
		select {
		case c, ok := <-p.came:
			if !ok {
				return
			}
			c.Close()
		case <-late:
			return
		}
	}
}

// Release ends rping.
func (p *guestInitiator) Release() {
	if p.running == nil {
		return
	}
	select {
	case <-p.running.done:
	default:
		p.kill(p.running.pid)
		p.running.conn.Close()
		<-p.running.done
	}
	p.running = nil
}
