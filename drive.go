package iwarp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
)

// The driver of a QP carries octets between the engine and the socket. One goroutine
// receives as long as there is a connection, or lets a consumer do so (lead.go). The
// goroutine that posts work also sends it, as far as the socket takes it without waiting;
// only if the socket does not, or if posts follow each other so quickly that they are
// better sent together, a second goroutine runs until everything that is queued has gone:
// see burst.go. The receiving goroutine never waits for a sender: what it has to send itself
// (Read Responses, a Terminate) is queued.
//
// One lock, QP.mu, guards engine and driver; it is not held while octets are moved, nor while code of the consumer's runs. CQs, SRQs,
// the memory table, each region and the role of the receiver have locks of their own, always
// taken after a QP's. Timers: one per QP, set to the engine's deadline; one for idle peers
// (watch.go); the bell's, by which a consumer that receives gives that back between two
// waits; and that of a hush (internal/tcp), by which one who polled and stopped does. Queues grow with what is in them; trim.go gives back what is not used any more.

var gathers = sync.Pool{New: func() any { return engine.NewGather() }}

// claim reserves the QP, in StateIdle, for one attempt to connect it.
func (qp *QP) claim() error {
	qp.mu.Lock()
	defer qp.unlock()
	err := qp.connectable()
	qp.connecting = qp.connecting || err == nil
	return err
}

func (qp *QP) connectable() error {
	s := qp.eng.State()
	switch {
	case qp.destroyed:
		return qp.ended()
	case s == engine.Idle && qp.connecting:
		return fmt.Errorf("the QP is being connected already: %w", ErrBadState)
	case s == engine.Idle && qp.closingLLP:
		return qp.stillClosing()
	case s == engine.Idle:
		return nil
	}
	if err := qp.ended(); err != nil {
		return err
	}
	return fmt.Errorf("the QP is in state %v: %w", s, ErrBadState)
}

// unclaim ends the attempt, whatever came of it.
func (qp *QP) unclaim() {
	qp.mu.Lock()
	qp.connecting = false
	qp.mu.Unlock()
}

// stream returns the attributes for the next connection.
func (qp *QP) stream() StreamAttr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.attr
}

// start puts the QP into RTS on a connection whose startup phase is over.
func (qp *QP) start(c *tcp.Conn, n *Negotiated, a StreamAttr, l lease) error {
	e := qp.endsOf(c)
	s := qp.measured(c, e)
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.startable(n, a); err != nil {
		return err
	}
	qp.segments, n.EMSS, n.MULPDU = s, s.emss, s.fpdus.mulpdu(s.emss, n.MarkersSend)
	var p engine.Params
	agreed(&p, n)
	if early := cmp.Or(qp.cfg.SendEarly, l.sendEarly); early > 0 && !n.SendFirst && !n.PeerToPeer {
		p.SendFrom = time.Now().Add(early)
	}
	p.TellsEnd = c.TellsEnd()
	p.EMSS, p.Record = qp.segments.aligned()
	p.Ahead = engine.Ahead{Segments: aheadSegments, Octets: aheadOctets, Budget: qp.rnic.shown.budget()}
	if qp.cfg.Unready != (Unready{}) {
		p.Waiting = qp.rnic.held.share(e.remote, func(why error) { qp.holdsTooMuch(c, why) })
	}
	if err := qp.enter(&p, c, &e, n, a, l); err != nil {
		return err
	}
	qp.conn = c
	go qp.receive(c)
	qp.settle()
	return nil
}

// startable reports whether the QP may be put into RTS with what was negotiated.
func (qp *QP) startable(n *Negotiated, a StreamAttr) error {
	if qp.destroyed {
		return qp.ended()
	}
	return a.checkNegotiated(qp.rnic.kind, &n.Negotiated)
}

// agreed sets what was negotiated.
func agreed(p *engine.Params, n *Negotiated) {
	p.Negotiated, p.MULPDU, p.RTT, p.Opener = n.Negotiated, n.MULPDU, n.RTT, n.Opener
	p.ORD, p.IRD = int(n.ORD), int(n.IRD)
}

// A link is what the driver sends on, and ends: a *tcp.Conn, or what carries whole segments.
type link interface {
	TrySend(v [][]byte) (n int, wait bool, err error)
	Send(v [][]byte) (n int, err error)
	HasHalves() bool
	CloseWrite() error
	Close() error
	Reset() error
	Foreign() bool
	// Told, Acknowledged, Lacks and Lost are those of an EndTeller; without one, Told and Lost return nil.
	Told() <-chan struct{}
	Acknowledged() uint32
	Lacks() bool
	Lost() error
	// Gone tells, while nobody receives, that the connection was lost, as far as the lower layer tells.
	Gone() error
	// Path says what the lower layer has learned of the way to the peer, and whether it has sent everything, as far as it tells either.
	// Any goroutine may call it, at any time.
	Path() (p tcp.Path, ok bool)
	addressed
}

// enter puts the QP into RTS on a link.
func (qp *QP) enter(p *engine.Params, c link, e *ends, n *Negotiated, a StreamAttr, l lease) error {
	if err := qp.eng.Connect(p); err != nil {
		return err
	}
	qp.srqHeld.next()
	qp.link, qp.ends, qp.neg, qp.closedLLP, qp.attr, qp.farewell = c, *e, n, false, a, farewell{}
	qp.finSent, qp.closing = false, false
	qp.watchOver(l)
	qp.logStart(n)
	select {
	case <-qp.done: // of an earlier connection
		qp.done, qp.orphans = make(chan struct{}), nil
		qp.sendCQ.revive(qp)
		qp.recvCQ.revive(qp)
	default:
	}
	qp.lead, qp.allSent = lead{skips: minSkips}, math.MaxUint64
	return nil
}

// begin sends what there is to be sent first, such as an RTR indication. The receiving
// goroutine does that: until it runs, the consumer that waited for the connection may have
// posted a request, which then goes in the same write.
func (qp *QP) begin(c *tcp.Conn) {
	qp.mu.Lock()
	defer qp.unlockReceiving()
	if qp.conn == c {
		qp.pushUnlocking()
	}
}

// grow makes a new goroutine's stack of 2 KiB one of 4 KiB, which is enough for taking in an FPDU, or a startup frame, or
// for coming to RTS, while there is next to nothing on it: later on the runtime has to walk through all of it. A stack that
// is larger stays as it is, unless it is nearly full.
//
//go:noinline
func grow(i int) byte {
	var room [5 << 8]byte
	return room[i]
}

// receive is the receiving goroutine.
func (qp *QP) receive(c *tcp.Conn) {
	defer qp.attend(c)
	grow(0)
	qp.lookAhead(c)
	qp.begin(c)
	for {
		qp.awaitRoom(c)
		err := c.Recv()
		if !qp.takeIn(c, err) {
			return
		}
		switch woke, back := qp.standsBack(c); {
		case back:
			leads, again := c.StandBack()
			if !again {
				return
			}
			qp.stoodBack(leads)
		case woke:
			// Goroutines that were woken by what came go first: finding the socket empty
			// and waiting for it takes a system call.
			runtime.Gosched()
		}
	}
}

// takeIn takes in what Recv brought, for whoever has the role of the receiver. If it reports
// false, that has ended.
func (qp *QP) takeIn(c *tcp.Conn, err error) (more bool) {
	defer c.Done()
	if more = qp.received(c, err); !more {
		c.Release()
		c.End()
	}
	return more
}

// received takes in what Recv brought and reports whether to go on.
func (qp *QP) received(c *tcp.Conn, err error) bool {
	qp.mu.Lock()
	defer qp.unlockReceiving()
	if !qp.carries(c) {
		return false
	}
	now := qp.now()
	b := c.Unread()
	n := 0
	qp.lead.offer = false
	if err == nil {
		qp.receiveCalls++
		qp.learnRoundTrip(now)
		n = qp.eng.Input(now, b)
		qp.lead.quiet = n == len(b)
		c.Consume(n, qp.eng.Need())
		qp.noteInput(now)
	}
	switch {
	case errors.Is(err, io.EOF):
		qp.eng.PeerClosed(now, len(b))
	case err != nil:
		qp.eng.Failed(now, err)
	}
	qp.pushFromUnlocking(now)
	return err == nil && qp.carries(c)
}

// carries reports whether what c brings is the QP's: c is not of an earlier connection, nor at its end.
func (qp *QP) carries(c link) bool { return qp.link == c && !qp.closingLLP && !qp.closedLLP }

// pushUnlocking sends what the engine has to send, as far as that needs no waiting, and
// hands out whatever happened. The caller holds qp.mu, which is released while
// the socket is written to.
func (qp *QP) pushUnlocking() { qp.pushFromUnlocking(qp.now()) }

// pushFromUnlocking is pushUnlocking for who knows the time.
func (qp *QP) pushFromUnlocking(now time.Time) {
	for !qp.writing && qp.link != nil && qp.eng.Pending() && qp.sendSomeUnlocking(now) {
		now = qp.wrote
	}
	qp.settle()
}

// maxShare bounds the gathered writes that a poster does after its own work is on its
// way, for what others have posted meanwhile.
const maxShare = 4

// pushOwnUnlocking is pushUnlocking for a poster whose work ends at a position of the
// Send Queue. It returns how many writes it has done.
func (qp *QP) pushOwnUnlocking(now time.Time, own uint64) (writes int) {
	for share := 0; !qp.writing && qp.link != nil && qp.eng.Pending(); writes++ {
		if qp.eng.Begun(own) {
			share++
		}
		if share > maxShare {
			qp.handOver()
			break
		}
		if !qp.sendSomeUnlocking(now) {
			break
		}
		now = qp.wrote
	}
	qp.settle()
	return writes
}

// handOver has the sending goroutine go on, as the only one that may write.
func (qp *QP) handOver() {
	qp.writing, qp.handed = true, true
	qp.startSender()
}

// sendSomeUnlocking builds and sends one gathered write. It reports false if there was
// nothing to send after all, or if the socket would not take it all: then a
// goroutine has taken over.
func (qp *QP) sendSomeUnlocking(now time.Time) bool {
	if qp.gather == nil {
		qp.gather = gathers.Get().(*engine.Gather)
	}
	v := qp.eng.Output(now, qp.gather)
	if len(v) == 0 {
		qp.putGather()
		return false
	}
	c := qp.link
	qp.writing = true
	qp.mu.Unlock()
	n, wait, err := c.TrySend(v)
	qp.mu.Lock()
	qp.sentUnlocking(n, err)
	if err == nil && wait {
		qp.handOver()
		return false
	}
	qp.writing = false
	qp.putGather()
	return true
}

// sendRestUnlocking sends what is queued, and waits for the socket, until nothing is left.
func (qp *QP) sendRestUnlocking() {
	qp.handed = false
	if qp.gather == nil {
		qp.gather = gathers.Get().(*engine.Gather)
	}
	c := qp.link
	for {
		v := qp.eng.Output(qp.now(), qp.gather)
		if len(v) == 0 {
			break
		}
		qp.mu.Unlock()
		n, err := c.Send(v)
		qp.mu.Lock()
		qp.sentUnlocking(n, err)
		qp.settle()
	}
	qp.putGather()
	qp.writing = false
}

// sentUnlocking tells the engine how a write went.
func (qp *QP) sentUnlocking(n int, err error) {
	now := qp.now()
	qp.wrote = now
	qp.sendCalls++
	if err != nil {
		qp.eng.Abandon(now, qp.gather)
		qp.eng.Failed(now, err)
		return
	}
	if !qp.gather.OnlyNudges() { // which go to peers that do nothing
		qp.watch.moved = now
	}
	qp.followEMSSUnlocking(now, n) // while the engine has octets in flight, no other connection takes the place of this one
	qp.eng.Sent(now, qp.gather, n)
}

func (qp *QP) putGather() {
	if qp.gather != nil {
		gathers.Put(qp.gather)
		qp.gather = nil
	}
}

// settle hands out completions and notices and does what the engine wants done
// to the connection and the timer.
func (qp *QP) settle() {
	qp.deliver()
	for how := qp.eng.LLP(); how != engine.Keep; how = qp.eng.LLP() {
		qp.endLLP(how)
		qp.deliver()
	}
	if qp.closedLLP && !qp.eng.InFlight() {
		qp.end()
	}
	qp.noteUnsent()
	qp.tellRoom()
	qp.timer.Set(qp.eng.Deadline(), qp, (*QP).onTimer)
	qp.slacken()
}
