package stream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/mpa"
)

// A ListenConfig says how to listen.
type ListenConfig struct {
	// RDMA says how to listen for connections.
	RDMA iwarp.ListenConfig
	// Acceptor says how to accept each of them.
	Acceptor Acceptor
}

// An Acceptor accepts requests. The zero value is usable.
type Acceptor struct {
	// RDMA says how the QP is made and connected. This package sets its MPA.PrivateData and its Prepare. Of the QP it
	// sets the queues, the CQs, SRQ, MaxInline, Linger and HalfClose; Receives is ErrInvalid. If PD is nil, the
	// iwarp.Listener's is used. If that has none either, each connection has a PD of its own on the Listener's RNIC. If
	// MPA.IRD and MPA.ORD are zero, they become 32 for a peer that wants RDMA Reads, and stay zero for any other.
	RDMA iwarp.AcceptConfig
	// Config sets the limits of each connection.
	Config Config
}

// Backlog is how many connections a Listener accepts before its program calls Accept. More requests wait, within
// iwarp.ListenConfig.MaxHalfOpen. A request of mpa.DialectRtr is answered at once, because its peer may never finish
// the startup. If it does while the backlog is full, the connection is closed.
const Backlog = 128

// A Listener is a net.Listener of Conns.
type Listener struct {
	under    *iwarp.Listener
	acceptor Acceptor
	network  string
	rejecter admission.Rejecter
	ready    chan *Conn
	backlog  chan struct{}   // a token for each connection that Accept has not returned
	ctx      context.Context // It ends with the Listener. Its cause is the first reason.
	cancel   context.CancelCauseFunc
	requests sync.WaitGroup // the goroutine of run, and one for each request
}

// Listen listens with the defaults of a ListenConfig.
func Listen(ctx context.Context, network, addr string) (*Listener, error) {
	return new(ListenConfig).Listen(ctx, network, addr)
}

// Listen listens on addr. The networks are those of iwarp.ListenConfig.Listen. The error is a *net.OpError. It wraps
// iwarp.ErrInvalid if the Acceptor could accept no peer.
func (c *ListenConfig) Listen(ctx context.Context, network, addr string) (*Listener, error) {
	ln, err := c.listen(ctx, network, addr)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: givenAddr{network, addr}, Err: brief("listen", err)}
	}
	return newListener(ln, network, &c.Acceptor), nil
}

func (c *ListenConfig) listen(ctx context.Context, network, addr string) (*iwarp.Listener, error) {
	if c == nil {
		return (*iwarp.ListenConfig)(nil).Listen(ctx, network, addr) // whose error says that it is nil
	}
	if err := c.Acceptor.check(); err != nil {
		return nil, err
	}
	return c.RDMA.Listen(ctx, network, addr)
}

// NewListener accepts connections from ln, which it owns from then on. What would be an error of Listen is one of the
// first Accept.
func (c *ListenConfig) NewListener(ln net.Listener) *Listener {
	if c == nil {
		return new(Acceptor).NewListener((*iwarp.ListenConfig)(nil).NewListener(ln))
	}
	return c.Acceptor.NewListener(c.RDMA.NewListener(ln))
}

// NewListener accepts from ln, which it owns from then on. If the Acceptor could accept no peer, the error of Accept
// wraps iwarp.ErrInvalid.
func (a *Acceptor) NewListener(ln *iwarp.Listener) *Listener {
	network := "tcp"
	if addr := ln.Addr(); addr != nil {
		network = addr.Network()
	}
	return newListener(ln, network, a)
}

func newListener(ln *iwarp.Listener, network string, a *Acceptor) *Listener {
	l := &Listener{under: ln, network: network, ready: make(chan *Conn), backlog: make(chan struct{}, Backlog)}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if err := a.check(); err != nil {
		l.cancel(err)
		_ = ln.Close()
		return l
	}
	l.acceptor = *a
	l.requests.Add(1)
	go l.run()
	return l
}

// run accepts requests. Each is answered in a goroutine of its own, so that a slow peer delays no other.
func (l *Listener) run() {
	defer l.requests.Done()
	for {
		req, err := l.under.Accept(l.ctx)
		if err != nil {
			l.cancel(err)
			return
		}
		select {
		case l.backlog <- struct{}{}:
		case <-l.ctx.Done():
			_ = req.Close()
			return
		}
		l.requests.Add(1)
		go l.answer(req)
	}
}

// answer accepts a request, and hands the connection to Accept. A peer that does not speak the protocol is rejected.
// The program does not learn of that.
func (l *Listener) answer(req *iwarp.Request) {
	defer l.requests.Done()
	rtr := req.MPA().Dialect == mpa.DialectRtr
	if rtr { // Until the peer has sent its RTR frame, MaxHalfOpen bounds the request, and the backlog does not.
		<-l.backlog
	}
	c, err := l.acceptor.accept(l.ctx, req, l.network, &l.rejecter)
	if rtr && !l.tryBacklog() {
		l.drop(c)
		return
	}
	defer func() { <-l.backlog }()
	if err != nil {
		return
	}
	select {
	case l.ready <- c:
	case <-l.ctx.Done():
		l.drop(c)
	}
}

// tryBacklog takes a token of the backlog, and reports whether there was one.
func (l *Listener) tryBacklog() bool {
	select {
	case l.backlog <- struct{}{}:
		return true
	default:
		return false
	}
}

// drop ends a connection that Accept does not return. c may be nil.
func (l *Listener) drop(c *Conn) {
	if c != nil {
		_ = c.qp.Abort()
		_ = c.Close()
	}
}

// Accept returns the next connection, a *Conn. A peer that fails to connect is rejected, and Accept goes on waiting.
// The error is a *net.OpError. After Close it wraps net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	if !l.isMade() {
		return nil, &net.OpError{Op: "accept", Err: errNoListener}
	}
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
	}
	return nil, &net.OpError{Op: "accept", Net: l.network, Addr: l.Addr(), Err: brief("accept", context.Cause(l.ctx))}
}

// Addr returns the address that the Listener listens on.
func (l *Listener) Addr() net.Addr {
	if !l.isMade() {
		return nil
	}
	return l.under.Addr()
}

// isMade reports whether Listen or NewListener has made the Listener.
func (l *Listener) isMade() bool { return l != nil && l.ctx != nil }

// Close ends the Listener, and the connections that Accept has not returned. All others go on. A second Close returns
// net.ErrClosed.
func (l *Listener) Close() error {
	if !l.isMade() {
		return &net.OpError{Op: "close", Err: errNoListener}
	}
	err := l.under.Close()
	if errors.Is(err, net.ErrClosed) {
		return &net.OpError{Op: "close", Net: l.network, Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.cancel(net.ErrClosed)
	l.requests.Wait()
	return err
}

// check returns an error if every peer would be rejected.
func (a *Acceptor) check() error {
	if a == nil {
		return errNoAcceptor
	}
	cfg := a.Config
	return cmp.Or(cfg.fill(), checkQP(&a.RDMA.QP))
}

// Accept accepts a request of the protocol, and rejects it if that fails. The error is a *net.OpError. It wraps an
// *rsockets.Error if the private data are not those of the protocol.
func (a *Acceptor) Accept(ctx context.Context, req *iwarp.Request) (*Conn, error) {
	if a == nil {
		return nil, &net.OpError{Op: "accept", Err: errNoAcceptor}
	}
	if req.LocalAddr() == nil {
		return nil, &net.OpError{Op: "accept", Err: errNoRequest}
	}
	return a.accept(ctx, req, req.LocalAddr().Network(), new(admission.Rejecter))
}

func (a *Acceptor) accept(
	ctx context.Context, req *iwarp.Request, network string, rejecter *admission.Rejecter,
) (*Conn, error) {
	c, err := a.acceptConn(ctx, req, network)
	if err == nil {
		return c, nil
	}
	_ = rejecter.RejectAndWait(req, rejectData(err)) // does nothing if the request was answered
	return nil, &net.OpError{
		Op: "accept", Net: network, Source: req.LocalAddr(), Addr: req.RemoteAddr(), Err: brief("accept", err),
	}
}

// busy is the private data of the rejection if a limit of the RNIC is reached.
const busy = "stream: no memory, or nothing else that a connection takes, is left here: try again later"

// rejectData returns the private data of a rejection. rdma-core sends none, and looks at none. So this end sends some
// only to tell the peer that it may try again.
func rejectData(why error) []byte {
	if errors.Is(why, iwarp.ErrLimit) {
		return []byte(busy)
	}
	return nil
}

func (a *Acceptor) acceptConn(ctx context.Context, req *iwarp.Request, network string) (*Conn, error) {
	peer, err := rsockets.ParseHello(req.PrivateData())
	if err != nil {
		return nil, err
	}
	ac := a.RDMA
	r, err := allocate(req.RNIC(), cmp.Or(ac.PD, req.PD()), ac.QP, a.Config)
	if err != nil {
		return nil, err
	}
	ours := r.hello(peer.Big) // Both ends use the byte order of the peer.
	ac.MPA.PrivateData, _ = ours.AppendBinary(nil)
	ac.NoReads, ac.Prepare = ac.NoReads || req.MPA().ORD == 0, nil
	if err := req.AcceptQP(ctx, r.qp, ac); err != nil {
		_ = r.release()
		return nil, err
	}
	return r.newConn(network, ours, peer), nil
}
