package stream

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/refuse"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// A ListenConfig says how to listen.
type ListenConfig struct {
	// RDMA says how to listen for connections.
	RDMA iwarp.ListenConfig
	// Acceptor says how each is accepted.
	Acceptor Acceptor
}

// An Acceptor accepts requests. The zero value is usable.
type Acceptor struct {
	// RDMA says how the QP is made and connected. This package sets its MPA.PrivateData, its Prepare, and the queues and CQs of its QP. If its PD
	// is nil, each connection has an RNIC of its own. If MPA.IRD and MPA.ORD are zero, they are iwarp.DefaultReadDepth for a peer that wants RDMA
	// Reads, and zero for any other.
	RDMA iwarp.AcceptConfig
	// Config says what each connection takes.
	Config Config
}

// Backlog is how many connections a Listener accepts ahead of its program. More requests wait, within iwarp.ListenConfig.MaxHalfOpen; one of mpa.DialectRtr is
// answered all the same, as nobody knows whether its peer ends the startup, and is closed if there is no room when that has.
const Backlog = 128

// A Listener is a net.Listener of Conns.
type Listener struct {
	under    *iwarp.Listener
	acceptor Acceptor
	network  string
	door     refuse.Door
	ready    chan *Conn
	room     chan struct{}   // a token for each connection that the program has not got yet
	ctx      context.Context // It ends with the Listener; its cause is why, at first.
	end      context.CancelCauseFunc
	answers  sync.WaitGroup
}

// Listen listens as a ListenConfig without settings does.
func Listen(ctx context.Context, network, addr string) (*Listener, error) {
	return new(ListenConfig).Listen(ctx, network, addr)
}

// Listen listens on addr. The networks are those of iwarp.Listen.
func (c *ListenConfig) Listen(ctx context.Context, network, addr string) (*Listener, error) {
	ln, err := iwarp.Listen(ctx, network, addr, c.RDMA)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: target{network, addr}, Err: brief("listen", err)}
	}
	return newListener(ln, network, c.Acceptor), nil
}

// NewListener accepts from ln, which it owns from then on.
func NewListener(ln *iwarp.Listener, a Acceptor) *Listener {
	return newListener(ln, ln.Addr().Network(), a)
}

func newListener(ln *iwarp.Listener, network string, a Acceptor) *Listener {
	l := &Listener{under: ln, acceptor: a, network: network, ready: make(chan *Conn), room: make(chan struct{}, Backlog)}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.answers.Add(1)
	go l.run()
	return l
}

// run takes the requests, each of which is answered by itself: a peer that is slow about it keeps no other waiting.
func (l *Listener) run() {
	defer l.answers.Done()
	for {
		req, err := l.under.Accept(l.ctx)
		if err != nil {
			l.end(err)
			return
		}
		select {
		case l.room <- struct{}{}:
		case <-l.ctx.Done():
			_ = req.Close()
			return
		}
		l.answers.Add(1)
		go l.answer(req)
	}
}

// answer accepts a request, and hands the connection over. A peer that is not one of ours is rejected, and nobody is told.
func (l *Listener) answer(req *iwarp.Request) {
	defer l.answers.Done()
	late := req.Dialect() == mpa.DialectRtr
	if late { // the peer owes a frame before it is up: until then iwarp.ListenConfig.MaxHalfOpen bounds it
		<-l.room
	}
	c, err := l.acceptor.accept(l.ctx, req, l.network, &l.door)
	if late && !l.hasRoom() {
		l.drop(c)
		return
	}
	defer func() { <-l.room }()
	if err != nil {
		return
	}
	select {
	case l.ready <- c:
	case <-l.ctx.Done():
		l.drop(c)
	}
}

// hasRoom reports whether there is room for one more connection, which then has it.
func (l *Listener) hasRoom() bool {
	select {
	case l.room <- struct{}{}:
		return true
	default:
		return false
	}
}

// drop ends a connection that the program does not get; nil: there is none.
func (l *Listener) drop(c *Conn) {
	if c != nil {
		_ = c.qp.Abort()
		_ = c.Close()
	}
}

// Accept returns the next connection, a *Conn. The error is a *net.OpError that wraps net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
	}
	return nil, &net.OpError{Op: "accept", Net: l.network, Addr: l.Addr(), Err: brief("accept", context.Cause(l.ctx))}
}

// Addr returns the address listened on.
func (l *Listener) Addr() net.Addr { return l.under.Addr() }

// Close ends the Listener, and connections that Accept has not returned. Others go on.
func (l *Listener) Close() error {
	err := l.under.Close()
	if errors.Is(err, net.ErrClosed) {
		return &net.OpError{Op: "close", Net: l.network, Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.end(net.ErrClosed)
	l.answers.Wait()
	return err
}

// Accept accepts a request whose private data are those of the protocol (rsockets.ParseHello). A request of another kind is rejected, and the
// error wraps an *rsockets.Error; so is one that cannot be served.
func (a *Acceptor) Accept(ctx context.Context, req *iwarp.Request) (*Conn, error) {
	return a.accept(ctx, req, req.LocalAddr().Network(), new(refuse.Door))
}

func (a *Acceptor) accept(ctx context.Context, req *iwarp.Request, network string, door *refuse.Door) (*Conn, error) {
	c, err := a.serve(ctx, req, network)
	if err != nil {
		_ = door.Refuse(req, said(err)) // unless it has been answered
		return nil, &net.OpError{Op: "accept", Net: network, Source: req.LocalAddr(), Addr: req.RemoteAddr(), Err: brief("accept", err)}
	}
	return c, nil
}

// busy is what a peer is told that there is nothing left for.
const busy = "stream: no memory, or nothing else that a connection takes, is left here: try again later"

// said is the private data to reject a request with: none, as rdma-core does; but that there is nothing left for it is said: to rdma-core's
// ends, which look at no private data then, it is the same.
func said(why error) []byte {
	if errors.Is(why, iwarp.ErrLimit) {
		return []byte(busy)
	}
	return nil
}

func (a *Acceptor) serve(ctx context.Context, req *iwarp.Request, network string) (*Conn, error) {
	peer, err := rsockets.ParseHello(req.PrivateData())
	if err != nil {
		return nil, err
	}
	ac := a.RDMA
	r, err := acquire(ac.PD, ac.QP, a.Config)
	if err != nil {
		return nil, err
	}
	ours := r.hello(peer.Big) // which has us write in its order, and it in its own
	ac.MPA.PrivateData, _ = ours.AppendBinary(nil)
	ac.NoReads, ac.Prepare = ac.NoReads || req.ORD() == 0, nil
	if err := req.AcceptQP(ctx, r.qp, ac); err != nil {
		_ = r.release()
		return nil, err
	}
	return r.begin(network, ours, peer), nil
}
