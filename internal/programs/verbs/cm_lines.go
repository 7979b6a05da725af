//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// turn is for how long a connection that TCP has made keeps those after it waiting: its Request is sent at once,
	// and is to come first, whenever it is answered.
	turn = 20 * time.Millisecond
	// turnLimit is how long it keeps them waiting before TCP has made it: more than a way there and back on most
	// networks.
	turnLimit = time.Second
)

// lines have the connections to a peer begin one after the other, so that they come there in the order in which they
// were asked for. Linux's siw dials within rdma_connect, and programs count on the order: perftest's with several QPs
// (-q) says by it which QP is whose.
type lines struct {
	mu   sync.Mutex
	last map[netip.AddrPort]chan struct{} // closed when the connection that was begun last has left
}

// A place is that of a connection in its line.
type place struct {
	before <-chan struct{} // closed when its turn has come
	leave  func()
	timer  *time.Timer // for leave; nil until its turn has come
}

// join has a connection be the next to a peer.
func (l *lines) join(peer netip.AddrPort) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[netip.AddrPort]chan struct{})
	}
	before, waits := l.last[peer]
	if !waits {
		before = make(chan struct{})
		close(before)
	}
	mine := make(chan struct{})
	l.last[peer] = mine
	return &place{before: before, leave: sync.OnceFunc(func() { l.leave(peer, mine) })}
}

func (l *lines) leave(peer netip.AddrPort, mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(mine)
	if l.last[peer] == mine {
		delete(l.last, peer)
	}
}

// await waits for the turn of a connection, or until nobody wants it any more.
func (p *place) await(ctx context.Context) {
	select {
	case <-p.before:
		p.timer = time.AfterFunc(turnLimit, p.leave)
	case <-ctx.Done():
	}
}

// connecting returns a Wrap that notes that TCP has made the connection.
func (p *place) connecting(wrap func(net.Conn) (net.Conn, error)) func(net.Conn) (net.Conn, error) {
	return func(c net.Conn) (net.Conn, error) {
		if p.timer != nil {
			p.timer.Reset(turn)
		}
		if wrap == nil {
			return c, nil
		}
		return wrap(c)
	}
}

// done is for a connection that has its answer, or came to nothing. Whoever leaves before its turn lets nobody pass
// those before it.
func (p *place) done() {
	if p.timer == nil {
		go func() {
			<-p.before
			p.leave()
		}()
		return
	}
	p.timer.Stop()
	p.leave()
}
