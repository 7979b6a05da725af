package driver

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/tcp"
)

// ErrEnded says that the connection takes no more work, as it has ended or is about to.
var ErrEnded = errors.New("the connection has ended, or is being closed")

// BeginHalfClose closes our half when what was posted is carried out. Its error is ErrEnded, or errors.ErrUnsupported
// where the lower layer has no halves.
func (c *Conn) BeginHalfClose() error {
	c.mu.Lock()
	err := c.takes()
	if err == nil && !c.link.HasHalves() {
		err = errors.ErrUnsupported
	}
	if err == nil {
		c.machine.BeginHalfClose(time.Now())
	}
	c.release(turn{now: c.now()})
	return err
}

// BeginClose begins an orderly close. No more work is taken.
func (c *Conn) BeginClose() { c.beginClose(false) }

// BeginPolledClose is BeginClose for who calls PollFIN next, which no timer is set for.
func (c *Conn) BeginPolledClose() { c.beginClose(true) }

func (c *Conn) beginClose(polled bool) {
	moved := c.whole.moves()
	c.mu.Lock()
	p := path{sent: c.machine.StreamSent()}
	c.mu.Unlock()
	p.ask(c.link)
	c.mu.Lock()
	now := time.Now()
	c.machine.Moved(now, c.whole.noteMoved(moved))
	c.path.learn(&p)
	c.fin.polled = polled
	c.machine.BeginClose(now, c.roundTrip(&p))
	if c.state == Open {
		c.enter(Closing)
	}
	c.release(turn{now: c.now()})
}

// Modify carries out a transition that the consumer asks for, but for that to Idle, which no connection makes: a QP
// is ready for another one when this is over. The error is engine.ErrBadState.
func (c *Conn) Modify(to engine.State) error {
	c.mu.Lock()
	var err error
	if to == engine.Idle || c.state == Over {
		err = fmt.Errorf("from %v to %v: %w", c.machine.State(), to, engine.ErrBadState)
	} else {
		err = c.machine.Modify(time.Now(), to)
	}
	c.release(turn{now: c.now()})
	return err
}

// Deny says what the peer may not do from now on.
func (c *Conn) Deny(a memory.Access) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Deny(a)
}

// Abort ends the connection at once, with a reset. What has ended already stays as it is.
func (c *Conn) Abort(cause error) {
	c.mu.Lock()
	if c.state < Closed {
		c.machine.Abort(cause)
	}
	c.fin.stopWait()
	c.release(turn{now: c.now()})
}

func (c *Conn) endLLP(how engine.LLP) {
	switch how {
	case engine.Finish:
		c.sendFIN()
	case engine.AwaitFINAck:
		c.endAfterPeer()
	case engine.Drop:
		c.closeLink(false)
	case engine.Reset:
		c.closeLink(true)
	}
}

// closeLink closes the lower layer, or resets it. The Close of one that is not a plain socket runs without a lock, as
// it is the user's code and may call the QP, or wait for the peer; so does what is to be waited for after it.
func (c *Conn) closeLink(reset bool) {
	c.watch.stop()
	if !c.link.Foreign() {
		endLink(c.link, reset)
		c.enter(Closed)
		return
	}
	c.enter(Leaving)
	stopped := c.fin.startWait()
	go func() {
		endLink(c.link, reset)
		var lost error
		if !reset {
			lost = awaitPeerAcked(c.link, &c.cfg, stopped)
		}
		c.mu.Lock()
		c.finAckOver(lost)
		c.release(turn{mode: sendNothing})
	}()
}

func endLink(l link, reset bool) {
	if reset {
		_ = l.Reset()
	} else {
		_ = l.Close()
	}
}

// sendFIN closes our half. If the lower layer has no halves, all of it is closed: what the peer might still send would
// be of no use.
func (c *Conn) sendFIN() {
	switch {
	case !c.link.HasHalves():
		c.machine.WholeClosed(time.Now())
	case c.link.Foreign(): // see closeLink
		go c.link.CloseWrite()
	default:
		c.fin.sent = true
		_ = c.link.CloseWrite() // whoever receives learns of a reset, after what came before it
	}
}

// pathState is what the lower layer has said of the path, and what it is to be asked. Conn.mu guards it.
type pathState struct {
	allSent uint64    // bytes of the stream, when TCP had last none that it had not sent
	finAt   time.Time // the end of the wait before the FIN for which TCP was asked that
	asks    bool      // TCP is to be asked for finAt
}

// A path is what a lower layer has said of the way to the peer.
type path struct {
	tcp.Path
	known bool   // the times are
	sent  uint64 // bytes of the stream that it had been given before
}

// ask asks the lower layer. The caller does not hold Conn.mu: the layer may be the user's code.
func (p *path) ask(l link) { p.Path, p.known = l.Path() }

// learn notes whether the lower layer has sent all that it had been given, as far as it tells.
func (s *pathState) learn(p *path) {
	if !p.Unsent {
		s.allSent = p.sent
	}
}

// noteUnsent has the lower layer asked, once for each wait before the FIN, whether it has sent all of the sent bytes.
// The wait lasts until quiet. What the lower layer sends only during it needs another wait after that.
func (s *pathState) noteUnsent(quiet time.Time, sent uint64) {
	if !quiet.Equal(s.finAt) {
		s.finAt, s.asks = quiet, !quiet.IsZero() && s.allSent != sent
	}
}

// maxMeasured bounds a round trip that the startup measured: it may include the time that the peer's consumer took.
const maxMeasured = time.Second

// roundTrip returns how long the path takes there and back, and zero if that is not known: what TCP says, or else what
// the startup took. If either may be from a bad moment, the smaller of the two counts.
func (c *Conn) roundTrip(p *path) time.Duration {
	startup := min(max(c.params().RTT, c.watch.answer), maxMeasured)
	switch {
	case p.known && p.Old:
		return min(p.Longest(), cmp.Or(startup, maxMeasured))
	case p.known:
		return p.Longest()
	}
	return startup
}

// learnRoundTrip takes the delay of the peer's RTR indication for a round trip, if that comes during Close: the wait
// before the FIN may have no better estimate.
func (c *Conn) learnRoundTrip(now time.Time) {
	if c.state == Closing && c.watch.owed {
		c.machine.RoundTrip(now, min(now.Sub(c.watch.began), maxMeasured))
	}
}

// A wait of no more than pollTime is not left to a timer, which may be a millisecond late: on a short path that is
// longer than all of a connection. maxPolls bounds it where the time stands still.
const (
	pollTime = 200 * time.Microsecond
	maxPolls = 10_000
)

// polledFor reports whether the time until something is due is too short for a timer; the zero time is never.
func polledFor(at, now time.Time) bool { return !at.IsZero() && at.Sub(now) <= pollTime }

// PollFIN waits until a FIN that is held back for a short time is sent. The receiving goroutine takes in what comes
// meanwhile.
func (c *Conn) PollFIN() {
	for range maxPolls {
		at, now := c.finHeldBack(), time.Now()
		if !polledFor(at, now) {
			break
		}
		if now.Before(at) {
			runtime.Gosched()
			continue
		}
		c.onDeadline(true)
	}
	c.mu.Lock()
	c.fin.polled = false
	c.release(turn{mode: sendNothing, now: c.now()}) // which sets the timer
}

// timerAt returns when the timer is to ring.
func (c *Conn) timerAt() time.Time {
	at := c.machine.Deadline()
	if c.fin.polled && at.Equal(c.machine.FINHeldUntil()) {
		return time.Time{}
	}
	return at
}

// finHeldBack returns until when the FIN is held back, and zero if it is not.
func (c *Conn) finHeldBack() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.FINHeldUntil()
}

// onTimer is called when the timer rings.
func (c *Conn) onTimer() { c.onDeadline(false) }

// onDeadline acts on the deadlines of the Machine that have passed when it is called. It empties the socket first: a Read
// that has come is to be answered before the FIN that was held back for it. That may take a while. A wait that begins
// meanwhile is not over, as the time is that of the call.
func (c *Conn) onDeadline(polled bool) {
	now := time.Now()
	if c.tcp != nil && !c.finHeldBack().IsZero() {
		ok, err := c.tcp.RecvRest() // a Read that is there already is answered before the FIN
		defer c.tcp.Done()
		if ok {
			receiver{c, c.tcp}.received(err)
		}
	}
	moved := c.whole.moves()
	c.mu.Lock()
	if c.timer.Take() || polled {
		c.timeout(now, moved)
	}
	c.release(turn{receiving: true, now: c.now()})
}

func (c *Conn) timeout(now time.Time, moved uint64) {
	if !c.machine.FINHeldUntil().IsZero() && c.path.allSent != c.machine.StreamSent() {
		c.machine.Unsent(time.Now())
	}
	c.machine.Moved(now, c.whole.noteMoved(moved))
	if c.machine.AwaitsFINAck() {
		c.noteUnacked(now)
	}
	c.machine.HandleTimeout(now)
}
