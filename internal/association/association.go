package association

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A Carrier is one SCTP association, up, with DDP's Adaptation Layer Indication on both sides.
type Carrier interface {
	// Send sends a message unordered. It waits while the Carrier has as much to send as it takes. Messages of one
	// stream are submitted in the order of the calls.
	Send(m sctp.Message) error
	// Run reports what happens until the association is lost, from any goroutine. Data of a message belongs to receive.
	// acked: the peer has the first n messages of a stream.
	Run(receive func(sctp.Message), acked func(stream uint16, n uint64), lost func(error))
	Streams() int    // in both directions
	MaxMessage() int // bytes, without fragmentation
	Ahead() int      // bytes that a peer which does its part can have come ahead of a missing message
	Shutdown(ctx context.Context) error
	Abort(text string)
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// Config configures an Association.
type Config struct {
	// Machine is what the sctp.Association is made with. Streams and MaxMessage are the Carrier's.
	Machine sctp.Config
	// LastWords is the segment that tells the peer of a session that is given up, and leaves the association as it is:
	// an RDMAP Terminate.
	LastWords []byte
	// CloseUnused shuts the association down with its last session.
	CloseUnused bool
	// Ended, if it is set, is called when the association is gone.
	Ended func()
	// Counted, if it is set, is given what the machine has counted since it was called last, before what follows from
	// that is known. It must not call the Association.
	Counted func(sctp.Stats)
}

// closeTime is how long a step of a session's end may take: SCTP may have to send it more than once.
const closeTime = 20 * time.Second

// shutdownTime bounds a SHUTDOWN: after it there is an ABORT. SCTP in user space sends again after 2 s at most.
//
// RFC 9260, section 9.2: the sender of the SHUTDOWN "MAY also start an overall guard timer T5-shutdown-guard", of 5
// times RTO.Max.
const shutdownTime = 10 * time.Second

// An Association is one with its sessions.
type Association struct {
	carrier Carrier
	cfg     Config
	knock   chan struct{} // there are requests
	gone    chan struct{} // closed when the association is
	said    chan struct{} // closed when the peer was told of the end

	mu       sync.Mutex // guards what follows
	m        *sctp.Association
	work     sync.Cond // there is something to send, or nothing will be any more
	sessions map[uint16]*Session
	requests []*Session            // that wait for Accept
	leaving  map[*Session]struct{} // rejected or refused, and the peer may not know yet
	assuring int                   // sessions that have ended, and whose peers are being told that all has come
	used     bool                  // there was a session
	ending   bool
	lost     bool
	cause    error
	handed   sctp.Message // what the Carrier is being given, or would not take
	holder   Holder       // nil: the Carrier is none
	held     int          // bytes ahead of what is missing, of all sessions
	unread   int          // bytes that wait to be received, of all sessions
	holding  bool
	counted  sctp.Stats // that Counted was given
	moved    uint64     // bytes, of all sessions and both directions
	timer    deadline.Timer[Association]
}

// New drives an association. It owns the Carrier from then on.
func New(c Carrier, cfg Config) *Association {
	cfg.Machine.Streams, cfg.Machine.MaxMessage = c.Streams(), c.MaxMessage()
	cfg.Machine.MaxEarly = c.Ahead() + maxAhead*sctp.EarlyCost
	cfg.Machine.CloseTimeout = cmp.Or(cfg.Machine.CloseTimeout, closeTime)
	a := &Association{
		carrier: c, cfg: cfg, knock: make(chan struct{}, 1), gone: make(chan struct{}), said: make(chan struct{}),
		m: sctp.New(time.Now(), cfg.Machine), sessions: make(map[uint16]*Session), leaving: make(map[*Session]struct{}),
	}
	a.holder, _ = c.(Holder)
	a.work.L = &a.mu
	a.mu.Lock()
	a.processOutputs()
	a.mu.Unlock()
	go c.Run(a.receive, a.acked, a.carrierLost)
	go a.write()
	return a
}

// receive takes a message, and then waits until its session has room for more: SCTP holds the peer back meanwhile.
func (a *Association) receive(m sctp.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moved += uint64(len(m.Data))
	a.m.Receive(time.Now(), m)
	a.processOutputs()
	if s := a.sessions[m.Stream]; s != nil {
		s.came += uint64(len(m.Data))
		s.waitForRoom()
	}
}

func (a *Association) acked(id uint16, n uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.m.Acked(time.Now(), id, n)
	a.processOutputs()
	if s := a.sessions[id]; s != nil {
		s.changed.Broadcast()
	}
}

func (a *Association) carrierLost(err error) {
	a.mu.Lock()
	a.lost, a.ending, a.cause = true, true, err
	a.m.Lost(err)
	a.processOutputs()
	a.mu.Unlock()
	close(a.gone)
	if a.cfg.Ended != nil {
		a.cfg.Ended()
	}
}

// write sends what the machine has to say.
func (a *Association) write() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.lost {
		m, ok := a.m.Output()
		if !ok {
			a.work.Wait()
			continue
		}
		a.handed = m
		a.mu.Unlock()
		err := a.carrier.Send(m)
		a.mu.Lock()
		if err != nil {
			a.closeCarrier(sctp.End{How: sctp.Abort, Cause: err})
			return
		}
		a.handed = sctp.Message{}
		a.moved += uint64(len(m.Data))
		if s := a.sessions[m.Stream]; s != nil {
			s.changed.Broadcast()
		}
	}
}

// processOutputs hands on what a call of the machine has led to: events, an end, the deadline. The caller holds mu.
func (a *Association) processOutputs() {
	a.count()
	for e, ok := a.m.Event(); ok; e, ok = a.m.Event() {
		a.handleEvent(e)
	}
	a.reportAcked()
	a.applyBackpressure()
	a.work.Signal()
	if e := a.m.End(); e.How != sctp.NotYet {
		a.closeCarrier(e)
	}
	if a.cfg.CloseUnused && a.used && a.m.Sessions() == 0 && a.assuring == 0 {
		a.closeCarrier(sctp.End{How: sctp.Shutdown, Cause: sctp.ErrUnused})
	}
	a.timer.Set(a.m.Deadline(), a, (*Association).onTimer)
}

// count passes on what the machine has counted.
func (a *Association) count() {
	all := a.m.Stats()
	if a.cfg.Counted != nil && all != a.counted {
		a.cfg.Counted(sctp.Stats{Ordered: all.Ordered - a.counted.Ordered, Dropped: all.Dropped - a.counted.Dropped})
	}
	a.counted = all
}

// reportAcked tells of ends that the peer knows.
func (a *Association) reportAcked() {
	for s := range a.leaving {
		if !a.m.Owes(s.id) {
			close(s.told)
			delete(a.leaving, s)
		}
	}
}

// closeCarrier closes the Carrier's association, once.
func (a *Association) closeCarrier(e sctp.End) {
	if a.ending {
		return
	}
	a.ending = true
	go func() {
		defer close(a.said)
		if e.How == sctp.Shutdown {
			ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
			defer cancel()
			if a.carrier.Shutdown(ctx) == nil {
				return
			}
		}
		a.carrier.Abort(e.Cause.Error())
	}()
}

func (a *Association) onTimer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.timer.Take() {
		return
	}
	a.m.HandleTimeout(time.Now())
	a.processOutputs()
}

// errEnding is why an association has no new session.
var errEnding = errors.New("the association is being ended")

// Begin asks the peer for a session: Session.Answer waits for what it says. The error wraps mpa.ErrOffer, is
// sctp.ErrLimit, or says that the association has ended, or is about to.
func (a *Association) Begin(o mpa.Offer) (*Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.lost:
		return nil, a.cause
	case a.ending:
		return nil, errEnding
	}
	id, err := a.m.Connect(time.Now(), o)
	if err != nil {
		return nil, err
	}
	s := a.newSession(id)
	a.processOutputs()
	return s, nil
}

// Accept returns the peer's next request for a session. It is for one goroutine at a time.
func (a *Association) Accept(ctx context.Context) (*Session, error) {
	for {
		if s := a.nextRequest(); s != nil {
			return s, nil
		}
		select {
		case <-a.knock:
		case <-ctx.Done():
			return nil, deadline.ContextError(ctx)
		case <-a.gone:
			return nil, a.cause
		}
	}
}

func (a *Association) nextRequest() *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) == 0 {
		return nil
	}
	s := a.requests[0]
	a.requests = slices.Delete(a.requests, 0, 1)
	return s
}

// StopListening has the peer's requests refused that wait for Accept, and those that are still to come.
//
// RFC 5043, section 5.2.3: "When a DDP Stream Session Initiate cannot be forwarded to the ULP due to such a limit, the
// adaptation layer MUST respond with a DDP Stream Session Terminate message."
func (a *Association) StopListening() {
	for _, s := range a.takeRequests() {
		_ = s.Cancel()
	}
}

// takeRequests returns those that wait for Accept, after which there will be no more.
func (a *Association) takeRequests() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.m.StopListening()
	a.processOutputs() // there may be a deadline now
	waiting := a.requests
	a.requests = nil
	return waiting
}

// announce wakes Accept.
func (a *Association) announce() {
	select {
	case a.knock <- struct{}{}:
	default:
	}
}

// Close ends the association at once, with all its sessions.
func (a *Association) Close(text string) {
	a.carrier.Abort(text)
	<-a.gone
}

// Used reports whether there ever was a session.
func (a *Association) Used() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// RemoteAddr returns the peer's address.
func (a *Association) RemoteAddr() net.Addr { return a.carrier.RemoteAddr() }
