package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// ListenConfig configures a Listener, or Respond. The zero value is usable.
type ListenConfig struct {
	// RNIC counts and logs what the Listener does. If nil, the PD's; if that is nil
	// too, the Listener makes one. A PD or QP of another RNIC than that of RNIC or PD is
	// ErrInvalid, here and when a Request is accepted.
	RNIC *RNIC
	// PD is where Accept creates QPs, unless its AcceptConfig names another. If nil,
	// each connection gets a Protection Domain of its own.
	PD *PD
	// Preset, if it is set, supplies what the peers need wherever the settings here,
	// and those of an AcceptConfig, are zero.
	Preset *Preset
	// RequestTimeout bounds the wait for a peer's whole MPA Request. If zero, 5 s;
	// if negative, there is no bound.
	RequestTimeout time.Duration
	// Dialects are the startup dialects that are served, as far as the RNIC's Kind
	// has them. If empty, all but mpa.DialectRtr: see mpa.ResponderConfig.
	Dialects []mpa.Dialect
	// Messages accepts a private data message in place of a Start Key or Request: see
	// mpa.ResponderConfig.
	Messages bool
	// Markers and NoCRC are what a non-permissive RNIC says of itself when it turns
	// down a revision 0 Request. The RNIC's own preference for markers has the same
	// effect as Markers.
	Markers, NoCRC bool
	// TolerateEarly accepts a peer that sends octets after its Request and before our
	// answer, and takes them for its first FPDU. By default Accept closes the connection
	// then and returns an error that wraps ErrEarly: such octets cannot be FPDUs by right,
	// as the peer does not know yet whether we want markers and CRCs. They are found on
	// sockets of Unix-like systems, and where a bufio.Reader has read ahead; elsewhere
	// they are tolerated. A rejected connection's octets are the consumer's in any case.
	TolerateEarly bool
	// RTRTimeout bounds how long the Initiator of a peer-to-peer connection may owe its
	// Ready-to-Receive indication after our Reply; RNICs send it by themselves. After that time
	// the QP ends with an error that wraps ErrNoRTR. If zero, 30 s; if negative, there is no
	// bound. Other Initiators may take their time: see QPConfig.IdleTimeout.
	RTRTimeout time.Duration
	// A negative value of this limit and those after it is an error of Listen, or of the
	// first Accept.
	//
	// MaxHalfOpen bounds the connections that are not up yet: those whose Request has not
	// arrived or waits for Accept, and those that owe a frame after our answer, as they do in
	// some dialects, or the RTR indication of a peer-to-peer connection. To make room for one
	// more, the address that has most of them loses one: the oldest that owes us something or,
	// if none does and the address has more than the new one's, the oldest Request that waits
	// for Accept. If it is the new one's own address, and none from there owes us anything, the
	// new one is closed. If zero, 1024.
	MaxHalfOpen int
	// MaxHalfOpenPerSource bounds those of them that come from one address: to make
	// room for one more, the oldest from the same address is closed. If zero, only
	// MaxHalfOpen bounds them. All IPv6 addresses with the same first 64 bits count as
	// one address; networks without IP addresses are not bounded.
	MaxHalfOpenPerSource int
	// MaxPerSource bounds the connections from one address altogether: half-open ones,
	// Requests that were not answered yet, and established ones. One more is closed at
	// once. If zero, there is no bound.
	MaxPerSource int
	// Net listens on TCP. The zero value is usable.
	Net net.ListenConfig
	// WrapUDP and MTU are for SCTP in user space, as in a Dialer. The socket is that of all associations.
	WrapUDP func(UDPSocket) (UDPSocket, error)
	MTU     int
	// Stack, if it is set, listens on TCP in place of Net. As in a Dialer, it is ErrInvalid over SCTP.
	Stack Stack
}

const (
	defaultMaxHalfOpen = 1024
	defaultRTRTimeout  = 30 * time.Second
)

// rnic returns the RNIC to count with.
func (cfg *ListenConfig) rnic() *RNIC {
	switch {
	case cfg.RNIC != nil:
		return cfg.RNIC
	case cfg.PD != nil:
		return cfg.PD.rnic
	}
	return NewRNIC(RNICConfig{})
}

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

	places places

	mu     sync.Mutex
	closed bool // hangUp was called
	qps    map[*QP]struct{}
}

// Listen listens for connections on a TCP address, or with network "sctp", "sctp4" or "sctp6" on one of SCTP in UDP
// (RFC 6951), whose SCTP port is that of UDP, and with "sctp:kernel" and the like on one of the kernel's SCTP, as Dial
// has them. Over SCTP, RequestTimeout bounds how long a peer's association may be there
// without a request; what is about MPA in the ListenConfig has no effect.
func Listen(ctx context.Context, network, addr string, cfg ListenConfig) (*Listener, error) {
	op := &OpError{Op: "listen", To: network + " " + addr}
	if isSCTP(network) {
		l, err := cfg.listenSCTP(ctx, network, addr)
		return l, op.with(err)
	}
	ln, err := cfg.listen(ctx, network, addr)
	if err != nil {
		return nil, op.with(err)
	}
	return NewListener(ln, cfg), nil
}

func (cfg *ListenConfig) listen(ctx context.Context, network, addr string) (net.Listener, error) {
	if err := cmp.Or(checkNetwork(network), checkUDP(network, cfg.MTU, cfg.WrapUDP != nil)); err != nil {
		return nil, err
	}
	if err := cfg.consistent(); err != nil {
		return nil, err
	}
	if cfg.Stack != nil {
		return cfg.Stack.Listen(ctx, network, addr)
	}
	return cfg.Net.Listen(ctx, network, addr)
}

func (cfg *ListenConfig) consistent() error {
	if cfg.RNIC != nil && cfg.PD != nil && cfg.PD.rnic != cfg.RNIC {
		return fmt.Errorf("%w: ListenConfig.PD is of another RNIC than ListenConfig.RNIC", ErrInvalid)
	}
	if err := cfg.check(); err != nil {
		return err
	}
	return cfg.checkOpen()
}

// checkOpen returns an error if what the Listener is to use is closed.
func (cfg *ListenConfig) checkOpen() error {
	if cfg.PD != nil {
		return cfg.PD.checkOpen()
	}
	if cfg.RNIC != nil {
		return cfg.RNIC.checkOpen()
	}
	return nil
}

// named returns the RNIC that the consumer has named, or nil.
func (cfg *ListenConfig) named() *RNIC {
	if cfg.RNIC == nil && cfg.PD == nil {
		return nil
	}
	return cfg.rnic()
}

// check refuses values that are none: limits, dialects, and a kind of RNIC.
func (cfg *ListenConfig) check() error {
	if err := checkDialects(cfg.Dialects); err != nil {
		return err
	}
	if cfg.RNIC != nil || cfg.PD != nil {
		if err := badOffer("RNICConfig.Kind", checkKind(cfg.rnic().kind)); err != nil {
			return err
		}
	}
	for _, l := range []struct {
		name  string
		value int
	}{{"MaxHalfOpen", cfg.MaxHalfOpen}, {"MaxHalfOpenPerSource", cfg.MaxHalfOpenPerSource}, {"MaxPerSource", cfg.MaxPerSource}} {
		if l.value < 0 {
			return fmt.Errorf("%w: ListenConfig.%s is %d: a limit cannot be negative, and 0 is its default", ErrInvalid, l.name, l.value)
		}
	}
	return nil
}

// checkNetwork refuses networks that are not TCP's: MPA is defined over TCP. Over any
// other stream of octets there are Dialer.Initiate, and NewListener.
func checkNetwork(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
		return nil
	}
	return fmt.Errorf("%w: network %q: there are tcp, tcp4 and tcp6, and sctp, sctp4 and sctp6, which may name their carrier: sctp:udp, sctp:kernel; "+
		"over any other stream of octets, such as a Unix socket, connect with Dialer.Initiate and listen with NewListener", ErrInvalid, network)
}

// NewListener accepts connections from ln, which it owns from then on.
func NewListener(ln net.Listener, cfg ListenConfig) *Listener {
	if ln == nil {
		return noListener(cfg)
	}
	l := newListener(ln, cfg)
	l.begin(cfg.consistent(), func() { l.acceptTCP(ln) })
	return l
}

// begin accepts connections, unless there is an error, or the RNIC is closed: Accept says so then.
func (l *Listener) begin(err error, accept func()) {
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
	l.places = places{
		halfOpen: cfg.MaxHalfOpen, halfOpenPerSource: cfg.MaxHalfOpenPerSource, perSource: cfg.MaxPerSource,
		sources: make(map[netip.Prefix]*sourcePlaces), onEvict: l.evicted,
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l
}

// Addr returns the address listened on. Over SCTP in user space it is the *net.UDPAddr of the socket, whose Network is
// "udp": what a firewall sees, and a Dial with network "sctp" reaches. Over the kernel's SCTP its Network is "sctp".
// The addresses of QPs and Requests are of the same kind.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// RNIC returns the RNIC that counts and logs for the Listener.
func (l *Listener) RNIC() *RNIC { return l.rnic }

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

// outOfDescriptors closes a half-open connection, or waits for somebody else to free a descriptor. The system says that there is none whether a
// connection waits for one or not.
func (l *Listener) outOfDescriptors(ln net.Listener, err error) {
	if tcp.Knocks(ln) {
		l.rnic.log.Log(l.ctx, LevelConnection, "iwarp: cannot accept a TCP connection now", "local", l.Addr().String(), "cause", err.Error())
		if l.places.evictOne() {
			return
		}
	}
	select {
	case <-time.After(5 * time.Millisecond):
	case <-l.ctx.Done():
	}
}

// admit begins the startup phase of a connection, if there is room for it. [Z04]
func (l *Listener) admit(c net.Conn) {
	p := l.places.enter(c)
	if p == nil || l.ctx.Err() != nil {
		l.evicted(c)
		_ = c.Close()
		p.leave()
		return
	}
	l.tasks.Go(func() {
		grow(0)
		l.respond(c, p)
	})
}

func (l *Listener) tally() tally { return tally{&l.rnic.startup, &l.counts} }

// evicted counts a connection that is closed for want of room, and logs it; nil is one of a QP, which has a record of its own.
func (l *Listener) evicted(c evictable) {
	l.tally().count(func(s *StartupStats) { s.Evicted++ })
	if c != nil && l.ctx.Err() == nil {
		l.rnic.log.Log(l.ctx, LevelStartup, "iwarp: startup failed", "local", addrText(l.Addr()), "peer", addrText(c.RemoteAddr()), "cause", ErrEvicted.Error())
	}
}

// respond reads the Request of one connection and offers it to Accept.
func (l *Listener) respond(c net.Conn, p *place) {
	req := &Request{ln: l, place: p, rnic: l.rnic, named: l.cfg.named(), pd: l.cfg.PD, conn: c, counts: l.tally()}
	err := req.read(l.ctx, &l.cfg)
	failed := func() {
		if err != nil {
			l.tally().failed(err)
		}
	}
	switch {
	case !p.arrived(failed): // it was closed to make room
	case err != nil:
		l.rnic.log.Log(l.ctx, LevelStartup, "iwarp: startup failed", append(logEnds(c), "cause", err.Error())...)
	case l.offer(req):
		return
	}
	_ = c.Close()
	p.leave()
}

// offer hands a Request to Accept. It reports false if the Listener has ended before that, or the connection was closed
// to make room.
func (l *Listener) offer(r *Request) bool {
	select {
	case l.ready <- r:
		return true
	case <-r.place.wait():
	case <-l.ctx.Done():
	}
	return false
}

// Accept returns the next connection request, to be accepted or rejected. Its error
// is an *OpError: it wraps the context's, or tells why the Listener has ended.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	for {
		select {
		case r := <-l.ready:
			if r.place.waited() {
				return r, nil
			}
			r.place.leave() // it was closed to make room
		case <-ctx.Done():
			return nil, l.acceptFailed(ctx.Err())
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
	l.stop(errListenerClosed)
	err := l.hangUp()
	l.tasks.Wait()
	if errors.Is(err, net.ErrClosed) {
		return &OpError{Op: "close", Addr: l.Addr(), Err: errListenerClosed}
	}
	return err
}

// hangUp accepts nothing more. It does not wait for what is under way.
func (l *Listener) hangUp() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again { // not every carrier of SCTP says so itself
		return errListenerClosed
	}
	l.rnic.removeListener(l)
	return l.ln.Close()
}
