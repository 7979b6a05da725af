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
	// RequestTimeout bounds the wait for a peer's whole MPA Request. If zero, 5 s;
	// if negative, there is none.
	RequestTimeout time.Duration
	// MaxHalfOpen bounds the connections that have not been accepted yet: whose
	// Request has not arrived, or waits for Accept. For one more, the oldest
	// whose Request has not arrived is closed. If zero, 1024.
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

	mu       sync.Mutex
	halfOpen *list.List // of *halfOpen, the oldest first
	err      error      // why the TCP listener ended
}

// halfOpen is a connection that is not accepted yet.
type halfOpen struct {
	conn    net.Conn
	waiting bool // its Request has arrived
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
	l := &Listener{rnic: cfg.RNIC, cfg: cfg, ln: ln, ready: make(chan *Request), halfOpen: list.New()}
	switch {
	case l.rnic != nil:
	case cfg.PD != nil:
		l.rnic = cfg.PD.rnic
	default:
		l.rnic = NewRNIC(RNICConfig{})
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.acceptTCP()
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
		if err != nil {
			if isTemporary(err) {
				time.Sleep(5 * time.Millisecond) // out of descriptors: they may come back
				continue
			}
			l.stop(err)
			return
		}
		go l.respond(c, l.admit(c))
	}
}

func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (l *Listener) stop(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.cancel()
}

// admit enters a connection among the half-open ones, and makes room for it.
func (l *Listener) admit(c net.Conn) *list.Element {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halfOpen.Len() >= l.cfg.MaxHalfOpen {
		l.evict()
	}
	return l.halfOpen.PushBack(&halfOpen{conn: c})
}

// evict closes the oldest connection whose Request has not arrived, or the
// oldest of all.
func (l *Listener) evict() {
	victim := l.halfOpen.Front()
	for e := victim; e != nil; e = e.Next() {
		if !e.Value.(*halfOpen).waiting {
			victim = e
			break
		}
	}
	_ = victim.Value.(*halfOpen).conn.Close()
	l.halfOpen.Remove(victim)
	l.rnic.countStartup(func(s *StartupStats) { s.Evicted++ })
}

func (l *Listener) leave(e *list.Element) {
	l.mu.Lock()
	l.halfOpen.Remove(e)
	l.mu.Unlock()
}

func (l *Listener) arrived(e *list.Element) {
	l.mu.Lock()
	e.Value.(*halfOpen).waiting = true
	l.mu.Unlock()
}

// respond reads the Request of one connection and offers it to Accept.
func (l *Listener) respond(c net.Conn, e *list.Element) {
	defer l.leave(e)
	req, err := respond(l.ctx, c, l.rnic, l.cfg.PD, mpa.Limits{Timeout: l.cfg.RequestTimeout})
	if err != nil {
		_ = c.Close()
		l.rnic.log.Log(l.ctx, LevelConnection, "iwarp: startup failed", "peer", c.RemoteAddr().String(), "cause", err.Error())
		return
	}
	l.arrived(e)
	select {
	case l.ready <- req:
	case <-l.ctx.Done():
		_ = c.Close()
	}
}

// Accept returns the next connection request, to be accepted or rejected. Its
// error is the context's, or an *OpError when the Listener has ended.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	select {
	case r := <-l.ready:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, &OpError{Op: "accept", Addr: l.Addr(), Err: l.err}
	}
}

// Close ends the Listener. Half-open connections are closed; QPs are not.
func (l *Listener) Close() error {
	l.stop(net.ErrClosed)
	err := l.ln.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.halfOpen.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*halfOpen).conn.Close()
	}
	return err
}

// ListenerStats counts what a Listener sees.
type ListenerStats struct {
	HalfOpen int // connections not accepted yet
	StartupStats
}

// Stats returns the Listener's counters; those of the startup are its RNIC's.
func (l *Listener) Stats() ListenerStats {
	s := ListenerStats{StartupStats: l.rnic.Stats().Startup}
	l.mu.Lock()
	s.HalfOpen = l.halfOpen.Len()
	l.mu.Unlock()
	return s
}
