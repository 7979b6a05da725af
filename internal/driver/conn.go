package driver

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/reclaim"
	"github.com/goiwarp/iwarp/internal/tcp"
)

// An Owner is the QP of a connection, as the driver sees it. No lock of the driver's is held when its methods are
// called. They are called in order, by one goroutine at a time, and none after Ended. Only Settled and Awaited may be
// called by any goroutine, at any time.
type Owner interface {
	// Heard: the peer's first FPDU has come.
	Heard()
	// Completed takes completions, in order; cause is why those have failed that have. It reports whether somebody
	// waited for one of them. It keeps nothing of done.
	Completed(done []engine.Completion, cause error) (waited bool)
	// Noticed takes a notice; cause is the Machine's at that time.
	Noticed(n *engine.Notice, cause error)
	// Ended: the connection is over, and all its requests have been given back.
	Ended(e *End)
	// Settled is called when what a goroutine did has been handed up, or it has written while somebody waits for room
	// in the Send Queue. Receiving tells that it holds the receive buffer,
	// so that it must not wait for what is still to be received.
	Settled(receiving bool)
	// Awaited reports whether anybody waits for what the connection brings, and does not receive for itself.
	Awaited() bool
}

// Config is what a QP asks of its connection.
type Config struct {
	Owner       Owner
	SendDepth   int // entries of the Send Queue
	RecvDepth   int // entries of the Receive Queue; 0 with a Shared Receive Queue
	FPDUs       FPDUs
	RNR         bool // Sends wait for receives
	IdleTimeout time.Duration
	Spin        time.Duration // how long a wait looks before it sleeps; zero or less: never
	// RTRTimeout bounds how long the peer may owe its RTR indication; zero: it owes none.
	RTRTimeout time.Duration
	// CloseTimeout and CloseLimit bound the wait for the peer to have the end of our half.
	CloseTimeout, CloseLimit time.Duration
	// Errors of timeouts, which name the QP's settings.
	ErrNoRTR, ErrIdle error
	// Unpolled counts the completions that the QP's consumer has not polled.
	Unpolled *Unpolled
	// Waiters counts those who wait for room in the Send Queue; nil: nobody does.
	Waiters *atomic.Int32
	// Born is some time in the past, since which the monotonic clock is read.
	Born *time.Time
	// Reclaimer gives back memory that a burst took.
	Reclaimer *reclaim.Reclaimer
}

// A Conn is a connection from RTS to its end. Its methods may be called by any goroutine.
type Conn struct {
	cfg   Config
	link  link
	tcp   *tcp.Conn // the link over MPA, and nil over another
	whole *wholeLink

	mu       sync.Mutex // guards what follows
	machine  *engine.Machine
	state    State
	reclaim  reclaim.Entry
	sender   sender
	burst    burst
	segments segments
	role     role
	watch    watch
	fin      fin
	path     pathState
	room     *sync.Cond // of mu: the Machine may take something in again; nil before anybody has waited
	// since when the receiving goroutine waits for room; zero: it does not
	heldSince time.Time
	up        handUp
	timer     deadline.Timer[Conn]
	counts    Counts
}

// Counts counts the system calls of a connection, but for those of looks, and how long these took.
type Counts struct {
	SendCalls, ReceiveCalls uint64
	Spun                    time.Duration
}

// An End is how a connection has ended.
type End struct {
	State    engine.State // Idle after an orderly end, and else Error
	Cause    error
	Lingered bool // our half has ended by itself, after the peer's
	Params   engine.Params
	EMSS     int // bytes; 0 over whole segments
	Stats    engine.Stats
	Counts   Counts
}

// A link is what a Conn sends on, and ends: a *tcp.Conn, or a stream that carries whole segments.
type link interface {
	TrySend(v [][]byte) (n int, wait bool, err error)
	Send(v [][]byte) (n int, err error)
	HasHalves() bool
	CloseWrite() error
	Close() error
	Reset() error
	Foreign() bool
	// The next four are those of package lowerlayer; PeerAcked returns nil where nothing tells.
	PeerAcked() <-chan struct{}
	AckProgress() uint32
	HasUnacked() bool
	LossError() error
	// Gone tells, while nobody receives, that the connection was lost, as far as the lower layer tells.
	Gone() error
	// Path says what the lower layer has learned of the way to the peer, and whether it has sent everything, as far
	// as it tells either. Any goroutine may call it, at any time.
	Path() (p tcp.Path, ok bool)
}

func newConn(cfg *Config, l link) *Conn {
	c := &Conn{cfg: *cfg, link: l, role: role{backOff: minBackOff}}
	c.path.allSent = math.MaxUint64
	c.sender.run = func() { c.turn(turn{mode: sendWaiting, now: c.now()}) }
	return c
}

// New returns a Conn over TCP and MPA. It does not run before Start. Loopback tells that no network cuts what is sent
// into segments.
func New(t *tcp.Conn, loopback bool, cfg *Config) *Conn {
	c := newConn(cfg, t)
	c.tcp = t
	c.segments = measured(t, cfg.FPDUs, loopback)
	t.SetSpin(cfg.Spin)
	return c
}

// Start runs the connection with a Machine that is in RTS. Of the other methods only Limits may come before it.
func (c *Conn) Start(m *engine.Machine) {
	c.mu.Lock()
	c.machine = m
	c.watchOver() // whose timer may be over at once
	c.mu.Unlock()
	if c.whole != nil {
		go wholeReceiver{c, c.whole}.run()
		return
	}
	go receiver{c, c.tcp}.run()
}

// params returns what the startup agreed on.
func (c *Conn) params() engine.Params { return c.machine.Negotiated() }

// now reads the clock. It takes half the time of time.Now, as it leaves the wall clock alone.
func (c *Conn) now() time.Time { return c.cfg.Born.Add(time.Since(*c.cfg.Born)) }

// Status says how far a connection is.
type Status struct {
	State    engine.State
	Phase    State
	Cause    error
	Lingered bool
	// Held tells that the connection is not over before a call returns that is the user's code.
	Held bool
}

// Status returns the status at this moment.
func (c *Conn) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.machine.InFlight() && c.link.Foreign()
	return Status{c.machine.State(), c.state, c.machine.Cause(), c.machine.Lingered(), held}
}

// Figures are what a QP's attributes and counters say of its connection.
type Figures struct {
	Params engine.Params
	// Requests that are not complete, and those whose completions are on their way to a CQ; and the latter alone.
	Sends, Recvs                 int
	ArrivingSends, ArrivingRecvs int
	EMSS                         int // bytes; 0 over whole segments
	Stats                        engine.Stats
	Counts                       Counts
}

// Figures returns the figures at this moment.
func (c *Conn) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := Figures{
		Params: c.params(), EMSS: c.segments.emss, Stats: c.machine.Stats(), Counts: c.counted(),
		ArrivingSends: c.up.sends, ArrivingRecvs: c.up.recvs,
	}
	f.Sends, f.Recvs = c.machine.Outstanding()
	f.Sends += f.ArrivingSends
	f.Recvs += f.ArrivingRecvs
	return f
}

// AddStats adds the connection's counters to others.
func (c *Conn) AddStats(s *engine.Stats, n *Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.AddStats(s)
	n.Add(c.counted())
}

// counted returns the counts so far.
func (c *Conn) counted() Counts {
	n := c.counts
	if c.tcp != nil {
		n.Spun = c.tcp.Spun()
	}
	return n
}

// Add adds o to n.
func (n *Counts) Add(o Counts) {
	n.SendCalls += o.SendCalls
	n.ReceiveCalls += o.ReceiveCalls
	n.Spun += o.Spun
}
