package iwarp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/tcp"
)

// A Listener accepts connections as the Responder of the MPA startup.
type Listener struct {
	rnic *RNIC
	cfg  ListenConfig
	ln   socket

	ctx    context.Context // ends with Close; its cause is why, at first
	stop   context.CancelCauseFunc
	ready  chan *Request
	tasks  sync.WaitGroup
	counts startupCounts

	halfOpen  *admission.Table
	dismissed admission.Dismissals // peers that were rejected

	mu     sync.Mutex
	closed bool // hangUp was called
	qps    map[*QP]struct{}
}

// Listen listens for connections on a TCP address with the defaults of a [ListenConfig]. The context bounds this call,
// and not the Listener.
func Listen(ctx context.Context, network, addr string) (*Listener, error) {
	return new(ListenConfig).Listen(ctx, network, addr)
}

// Listen listens for connections on a TCP address, or on one of Network. Over that, RequestTimeout bounds how long a
// peer's path, such as an association of SCTP, may be there without a request; what is about MPA has no effect.
func (cfg *ListenConfig) Listen(ctx context.Context, network, addr string) (*Listener, error) {
	op := &OpError{Op: "listen", To: network + " " + addr}
	if err := cfg.given(ctx); err != nil {
		return nil, op.with(err)
	}
	if cfg.Network != nil {
		l, err := cfg.listenSegments(ctx, network, addr)
		return l, op.with(err)
	}
	ln, err := cfg.listen(ctx, network, addr)
	if err != nil {
		return nil, op.with(err)
	}
	return cfg.NewListener(ln), nil
}

func (cfg *ListenConfig) listen(ctx context.Context, network, addr string) (net.Listener, error) {
	if err := checkNetwork("ListenConfig", network); err != nil {
		return nil, err
	}
	if err := cfg.consistent(); err != nil {
		return nil, err
	}
	if cfg.Stack != nil {
		return cfg.Stack.Listen(ctx, network, addr)
	}
	return tcp.Listen(ctx, cfg.Net, network, addr)
}

// NewListener accepts connections from ln, which it owns from then on.
func (cfg *ListenConfig) NewListener(ln net.Listener) *Listener {
	switch {
	case ln == nil:
		return endedListener(noSocket{}, errNoListener)
	case cfg == nil:
		return endedListener(ln, errNoListenConfig)
	}
	l := newListener(ln, *cfg)
	l.startAccepting(cfg.consistent(), func() { l.acceptTCP(ln) })
	return l
}

// startAccepting accepts connections, unless there is an error, or the RNIC is closed: Accept says so then.
func (l *Listener) startAccepting(err error, accept func()) {
	if err == nil {
		err = l.rnic.addListener(l)
	}
	if err != nil {
		l.stop(err)
		_ = l.ln.Close()
		return
	}
	l.tasks.Go(accept)
}

func newListener(ln socket, cfg ListenConfig) *Listener {
	if cfg.MaxHalfOpen == 0 {
		cfg.MaxHalfOpen = defaultMaxHalfOpen
	}
	l := &Listener{rnic: cfg.rnic(), cfg: cfg, ln: ln, ready: make(chan *Request), qps: make(map[*QP]struct{})}
	l.halfOpen = admission.NewHalfOpenTable(admission.HalfOpenBounds{
		HalfOpen: cfg.MaxHalfOpen, HalfOpenPerSource: cfg.MaxHalfOpenPerSource, PerSource: cfg.MaxPerSource,
	})
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l
}

// Addr returns the address listened on. The addresses of QPs and Requests are of the same kind.
func (l *Listener) Addr() net.Addr {
	if l.made() != nil {
		return nil
	}
	return l.ln.Addr()
}

// RNIC returns the RNIC that counts and logs for the Listener.
func (l *Listener) RNIC() *RNIC {
	if l == nil {
		return nil
	}
	return l.rnic
}

// acceptTCP begins the startup phase of every connection that arrives.
func (l *Listener) acceptTCP(ln net.Listener) {
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
			l.admit(c)
		case isTemporary(err):
			l.outOfDescriptors(ln, err)
		default:
			l.stop(err)
			return
		}
	}
}

func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// outOfDescriptors closes a half-open connection, or waits for somebody else to free a descriptor. The system says
// that there is none whether a connection waits for one or not.
func (l *Listener) outOfDescriptors(ln net.Listener, err error) {
	if tcp.Knocks(ln) {
		l.rnic.log.Log(l.ctx, levelConnection, "iwarp: cannot accept a TCP connection now", "local", l.Addr().String(),
			"cause", err.Error())
		if l.halfOpen.EvictOne() {
			return
		}
	}
	select {
	case <-time.After(5 * time.Millisecond):
	case <-l.ctx.Done():
	}
}

// An evictable is what has a slot until it is established: a connection, or what comes before one.
type evictable interface {
	RemoteAddr() net.Addr
	Close() error
}

// enter gives a connection a slot, or returns nil if there is none.
func (l *Listener) enter(c evictable) *admission.Slot {
	slot, _ := l.halfOpen.Enter(c.RemoteAddr(), func(error) {
		l.evicted(c)
		_ = c.Close()
	})
	return slot
}

// admit begins the startup phase of a connection, if there is room for it. [Z04]
func (l *Listener) admit(c net.Conn) {
	slot := l.enter(c)
	if slot == nil || l.ctx.Err() != nil {
		l.evicted(c)
		_ = c.Close()
		slot.Leave()
		return
	}
	l.tasks.Go(func() {
		driver.GrowStack()
		l.respond(c, slot)
	})
}

func (l *Listener) startupCounters() startupCounters {
	return startupCounters{&l.rnic.startup, &l.counts}
}

// evicted counts a connection that is closed for want of room, and logs it. It is nil where a QP has the connection:
// that logs the end itself.
func (l *Listener) evicted(c evictable) {
	l.startupCounters().count(func(s *StartupStats) { s.Evicted++ })
	if c != nil && l.ctx.Err() == nil {
		l.rnic.log.Log(l.ctx, levelStartup, "iwarp: startup failed", "local", addrText(l.Addr()), "peer",
			addrText(c.RemoteAddr()), "cause", ErrEvicted.Error())
	}
}

// respond reads the Request of one connection and offers it to Accept.
func (l *Listener) respond(c net.Conn, slot *admission.Slot) {
	_, untouched := l.ln.(*net.TCPListener)
	req := &Request{ln: l, slot: slot, rnic: l.rnic, named: l.cfg.named(), pd: l.cfg.PD, conn: c,
		counts: l.startupCounters(), untouched: untouched}
	err := req.read(l.ctx, &l.cfg)
	failed := func() {
		if err != nil {
			l.startupCounters().failed(err)
		}
	}
	switch {
	case !slot.Arrived(failed): // it was closed to make room
	case err != nil:
		l.rnic.log.Log(l.ctx, levelStartup, "iwarp: startup failed", append(logEnds(c), "cause", err.Error())...)
	case l.offer(req):
		return
	}
	_ = c.Close()
	slot.Leave()
}

// offer hands a Request to Accept. It reports false if the Listener has ended before that, or the connection was closed
// to make room.
func (l *Listener) offer(r *Request) bool {
	select {
	case l.ready <- r:
		return true
	case <-r.slot.AwaitAccept():
	case <-l.ctx.Done():
	}
	return false
}

// Accept returns the next connection request, to be accepted or rejected. Its error
// is an *OpError: it wraps the context's, or tells why the Listener has ended.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	if err := l.made(); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, l.acceptFailed(errNoContext)
	}
	for {
		select {
		case r := <-l.ready:
			if r.slot.Accepted() {
				return r, nil
			}
			r.slot.Leave() // it was closed to make room
		case <-ctx.Done():
			return nil, l.acceptFailed(deadline.ContextError(ctx))
		case <-l.ctx.Done():
			return nil, l.acceptFailed(context.Cause(l.ctx))
		}
	}
}

func (l *Listener) acceptFailed(err error) error {
	return &OpError{Op: "accept", Addr: l.Addr(), Err: err}
}

// Close ends the Listener. Half-open connections are closed; QPs, and Requests
// that Accept has returned, are not. Closing again is ErrClosed.
func (l *Listener) Close() error {
	if err := l.made(); err != nil {
		return err
	}
	err := l.endAccepting()
	l.dismissed.End(overFor(errListenerClosed), nil)
	if errors.Is(err, net.ErrClosed) {
		return &OpError{Op: "close", Addr: l.Addr(), Err: errListenerClosed}
	}
	return err
}

// endAccepting accepts nothing more, and ends what is half-open. The error is a net.ErrClosed where that was done
// before.
func (l *Listener) endAccepting() error {
	l.stop(errListenerClosed)
	defer l.tasks.Wait()
	return l.hangUp()
}

// hangUp accepts nothing more. It does not wait for what is under way.
func (l *Listener) hangUp() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again { // not every SegmentListener says so itself
		return errListenerClosed
	}
	l.rnic.removeListener(l)
	return l.ln.Close()
}

// A socket is what a Listener listens on.
type socket interface {
	Addr() net.Addr
	Close() error
}

// noSocket stands for what a Listener was not given.
type noSocket struct{}

// Addr has none to tell.
func (noSocket) Addr() net.Addr { return nil }

// Close has nothing to close.
func (noSocket) Close() error { return nil }

// endedListener is a Listener whose Accept says why there is nothing to accept.
func endedListener(ln socket, why error) *Listener {
	l := newListener(ln, ListenConfig{})
	l.startAccepting(why, nil)
	return l
}
