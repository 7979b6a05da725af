package iwarp

import (
	"container/list"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// ListenConfig configures a Listener. The zero value will do.
type ListenConfig struct {
	// RNIC counts and logs what the Listener does. If nil, one is made.
	RNIC *RNIC
	// PD is where Accept creates QPs, unless it is told otherwise. If nil, each
	// connection gets a Protection Domain of its own.
	PD *PD
	// Preset, if there is one, has what the peers need where the settings here, and
	// those of an AcceptConfig, are zero.
	Preset *Preset
	// RequestTimeout bounds the wait for a peer's whole MPA Request. If zero, 5 s;
	// if negative, there is none.
	RequestTimeout time.Duration
	// Dialects are the startup dialects served, as far as the RNIC's Kind has them.
	// If empty, all but mpa.DialectRtr: see mpa.ResponderConfig.
	Dialects []mpa.Dialect
	// Messages takes a private data message in place of a Start Key or Request: see
	// mpa.ResponderConfig.
	Messages bool
	// Markers and NoCRC are what a non-permissive RNIC says of itself when it turns
	// down a revision 0 Request; Markers also if it is the RNIC's preference.
	Markers, NoCRC bool
	// MaxHalfOpen bounds the connections that are not up yet: whose Request has not
	// arrived, or waits for Accept, or which owe a frame behind our answer, as they do
	// in some dialects. For one more, the oldest that owes us anything is closed; if
	// there is none, the new one. If zero, 1024.
	MaxHalfOpen int
	// Net listens on TCP. The zero value will do.
	Net net.ListenConfig
}

const defaultMaxHalfOpen = 1024

// A Listener takes connections as the Responder of the MPA startup.
type Listener struct {
	rnic *RNIC
	cfg  ListenConfig
	ln   net.Listener

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ready  chan *Request
	tasks  sync.WaitGroup
	counts startupCounts

	mu      sync.Mutex
	silent  *list.List // of *halfOpen: they owe us a Request, or another frame; the oldest first
	waiting int        // Requests that wait for Accept
	err     error      // why the TCP listener ended
}

// halfOpen is a connection on which a frame of the startup is awaited.
type halfOpen struct {
	conn    net.Conn
	evicted bool // guarded by Listener.mu
}

// Listen waits for connections on a TCP address.
func Listen(ctx context.Context, network, addr string, cfg ListenConfig) (*Listener, error) {
	ln, err := cfg.Net.Listen(ctx, network, addr)
	if err != nil {
		return nil, &OpError{Op: "listen", To: network + " " + addr, Err: err}
	}
	return NewListener(ln, cfg), nil
}

// NewListener takes connections from ln, which it owns from then on.
func NewListener(ln net.Listener, cfg ListenConfig) *Listener {
	if cfg.MaxHalfOpen <= 0 {
		cfg.MaxHalfOpen = defaultMaxHalfOpen
	}
	l := &Listener{rnic: cfg.RNIC, cfg: cfg, ln: ln, ready: make(chan *Request), silent: list.New()}
	switch {
	case l.rnic != nil:
	case cfg.PD != nil:
		l.rnic = cfg.PD.rnic
	default:
		l.rnic = NewRNIC(RNICConfig{})
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.tasks.Go(l.acceptTCP)
	return l
}

// Addr returns the address listened on.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// RNIC returns the RNIC that the Listener counts with.
func (l *Listener) RNIC() *RNIC { return l.rnic }

// acceptTCP starts the startup phase of every connection that comes.
func (l *Listener) acceptTCP() {
	for {
		c, err := l.ln.Accept()
		switch {
		case err == nil:
			l.admit(c)
		case isTemporary(err):
			l.outOfDescriptors(err)
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

// outOfDescriptors gives one back, or waits for somebody else to.
func (l *Listener) outOfDescriptors(err error) {
	l.rnic.log.Log(l.ctx, LevelConnection, "iwarp: cannot accept a TCP connection now", "cause", err.Error())
	l.mu.Lock()
	evicted := l.evict()
	l.mu.Unlock()
	if evicted {
		return
	}
	select {
	case <-time.After(5 * time.Millisecond):
	case <-l.ctx.Done():
	}
}

func (l *Listener) stop(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.cancel()
}

// admit begins the startup phase of a connection, if there is room for it. [Z04]
func (l *Listener) admit(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent.Len()+l.waiting >= l.cfg.MaxHalfOpen && !l.evict() || l.ctx.Err() != nil {
		l.tally().count(func(s *StartupStats) { s.Evicted++ })
		_ = c.Close()
		return
	}
	h := &halfOpen{conn: c}
	e := l.silent.PushBack(h)
	l.tasks.Go(func() { l.respond(h, e) })
}

func (l *Listener) tally() tally { return tally{&l.rnic.startup, &l.counts} }

// hold counts a connection as half-open, whose Request has been answered and which
// owes another frame. If there is no room, an older one is closed for it; it is never
// refused, as the consumer has taken it. release ends that, and reports whether the
// connection was closed meanwhile to make room.
func (l *Listener) hold(c net.Conn) (release func() (evicted bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent.Len()+l.waiting >= l.cfg.MaxHalfOpen {
		l.evict()
	}
	h := &halfOpen{conn: c}
	e := l.silent.PushBack(h)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !h.evicted {
			l.silent.Remove(e)
		}
		return h.evicted
	}
}

// evict closes the oldest connection on which a frame is awaited, and reports
// whether there was one.
func (l *Listener) evict() bool {
	e := l.silent.Front()
	if e == nil {
		return false
	}
	h := l.silent.Remove(e).(*halfOpen)
	h.evicted = true
	_ = h.conn.Close()
	l.tally().count(func(s *StartupStats) { s.Evicted++ })
	return true
}

// respond reads the Request of one connection and offers it to Accept.
func (l *Listener) respond(h *halfOpen, e *list.Element) {
	req := &Request{ln: l, rnic: l.rnic, pd: l.cfg.PD, conn: h.conn, counts: l.tally()}
	err := req.read(l.ctx, &l.cfg)
	if !l.arrived(h, e, err) {
		_ = h.conn.Close()
		return
	}
	select {
	case l.ready <- req:
	case <-l.ctx.Done():
		_ = h.conn.Close()
		l.handedOver()
	}
}

// handedOver takes off a connection whose Request has waited for Accept.
func (l *Listener) handedOver() {
	l.mu.Lock()
	l.waiting--
	l.mu.Unlock()
}

// arrived takes a connection off the silent ones. It reports whether its Request
// is there to be answered.
func (l *Listener) arrived(h *halfOpen, e *list.Element, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.evicted {
		return false
	}
	l.silent.Remove(e)
	if err != nil {
		l.tally().failed(err)
		l.rnic.log.Log(l.ctx, LevelConnection, "iwarp: startup failed", "peer", h.conn.RemoteAddr().String(), "cause", err.Error())
		return false
	}
	l.waiting++
	return true
}

// Accept returns the next connection request, to be accepted or rejected. Its
// error is the context's, or an *OpError when the Listener has ended.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	select {
	case r := <-l.ready:
		l.handedOver()
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, &OpError{Op: "accept", Addr: l.Addr(), Err: l.err}
	}
}

// Close ends the Listener. Half-open connections are closed; QPs, and Requests
// that Accept has returned, are not.
func (l *Listener) Close() error {
	l.stop(net.ErrClosed)
	err := l.ln.Close()
	l.tasks.Wait()
	return err
}

// ListenerStats counts what a Listener sees.
type ListenerStats struct {
	HalfOpen int // connections that are not up yet
	Waiting  int // of these, such whose Request is there for Accept
	StartupStats
}

// Stats returns the Listener's own counters. Its RNIC counts the same, and those
// of its other Listeners and Dialers with them.
func (l *Listener) Stats() ListenerStats {
	s := ListenerStats{StartupStats: l.counts.stats()}
	l.mu.Lock()
	s.HalfOpen, s.Waiting = l.silent.Len()+l.waiting, l.waiting
	l.mu.Unlock()
	return s
}
