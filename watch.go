package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// Errors of a connection that a timeout of ours has ended, as its peer did nothing.
var (
	// ErrNoRTR: the peer did not send its Ready-to-Receive indication; see
	// ListenConfig.RTRTimeout.
	ErrNoRTR = errors.New("the peer did not send its RTR indication")
	// ErrGap: a segment of the peer's did not come, although others came that were sent after it; see QPConfig.GapTimeout.
	ErrGap = engine.ErrGap
	// ErrIdle: nothing was sent or received; see QPConfig.IdleTimeout.
	ErrIdle = errors.New("nothing was sent or received")
)

// A lease is what a Listener has to do with a connection that has come up.
type lease struct {
	rtr   time.Duration // how long the peer may owe its RTR indication; 0: it owes none
	place *place        // of the connection at the Listener
	// sendEarly is the preset's QPConfig.SendEarly, for a QP that has none.
	sendEarly time.Duration
}

// A watch ends a connection whose peer does nothing (RFC 5042, section 6.4.2). It is guarded by the QP's lock.
type watch struct {
	lease
	idle  time.Duration // 0: it may be idle
	began time.Time
	moved time.Time // when octets were sent or received last
	// answer is how long a peer that owed us an FPDU took for it: an Initiator sends its
	// RTR indication as soon as it has our Reply.
	answer time.Duration
	owed   bool
	heard  bool // the Listener knows that the peer's first FPDU is here
	known  bool // note knows it
	timer  *time.Timer
	// target points to the QP until the connection has ended: the runtime may keep a stopped timer
	// for a while, and that must not keep the QP.
	target *atomic.Pointer[QP]
}

// watchOver begins the watch over a connection that has just come up.
func (qp *QP) watchOver(l lease) {
	now := time.Now()
	owed := qp.neg.Role == mpa.RoleResponder && qp.neg.PeerToPeer
	qp.watch = watch{lease: l, idle: qp.cfg.IdleTimeout, began: now, moved: now, owed: owed}
	if at, _ := qp.watch.next(); !at.IsZero() {
		target := new(atomic.Pointer[QP])
		target.Store(qp)
		qp.watch.target = target
		qp.watch.timer = time.AfterFunc(time.Until(at), func() {
			if qp := target.Load(); qp != nil {
				qp.onWatch()
			}
		})
	}
}

// newConn returns a connection for the QP to use, and sets what TCP itself watches over.
func (qp *QP) newConn(nc net.Conn) *tcp.Conn {
	c := tcp.New(nc)
	var keepAlive, userTimeout error
	if qp.cfg.KeepAlive.Enable {
		keepAlive = c.SetKeepAlive(qp.cfg.KeepAlive)
	}
	if qp.cfg.UserTimeout > 0 {
		userTimeout = c.SetUserTimeout(qp.cfg.UserTimeout)
	}
	if err := errors.Join(keepAlive, userTimeout); err != nil {
		qp.rnic.log.Log(context.Background(), LevelConnection, "iwarp: timeouts of TCP were not set",
			append(logEnds(nc), "qp", qp.num, "cause", err.Error())...)
	}
	return c
}

// next returns when the connection is to be ended if nothing happens until then, and whether that is for want of
// the RTR indication.
func (w *watch) next() (at time.Time, rtr bool) {
	if w.idle > 0 {
		at = w.moved.Add(w.idle)
	}
	if by := w.began.Add(w.rtr); w.rtr > 0 && (at.IsZero() || by.Before(at)) {
		at, rtr = by, true
	}
	return at, rtr
}

// why is the reason to end the connection, over which Sends may wait for receives.
func (w *watch) why(rtr, unready bool) error {
	switch {
	case rtr:
		return fmt.Errorf("%w within %v: %w", ErrNoRTR, w.rtr, engine.ErrTimeout)
	case unready:
		return fmt.Errorf("%w for %v, and no receive was posted for Sends that have come: %w", ErrIdle, w.idle, engine.ErrTimeout)
	}
	return fmt.Errorf("%w for %v: %w", ErrIdle, w.idle, engine.ErrTimeout)
}

// noteInput takes note that octets were received.
func (qp *QP) noteInput(now time.Time) {
	if first := qp.watch.note(now, qp.eng.Heard()); first && qp.neg.Role == mpa.RoleResponder {
		qp.event(EventEstablished, nil)
	}
}

// note takes note that octets were sent or received, and whether the peer's first FPDU is here; it reports
// whether that is news.
func (w *watch) note(now time.Time, heard bool) (first bool) {
	first, w.known = heard && !w.known, heard
	w.moved = now
	if heard {
		if w.owed {
			w.owed, w.answer = false, now.Sub(w.began)
		}
		w.rtr = 0
		if w.idle == 0 { // there is nothing more to watch over
			w.stop()
		}
		w.told()
	}
	return first
}

// end ends the watch with the connection.
func (w *watch) end() {
	w.stop()
	w.told()
	w.place.leave()
	w.place = nil
}

// told says at the Listener that the peer owes nothing any more.
func (w *watch) told() {
	if !w.heard {
		w.heard = true
		w.place.heard()
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.target.Store(nil)
		w.timer, w.target = nil, nil
	}
}

// onWatch ends the connection if its time is over, and looks again later if not.
func (qp *QP) onWatch() {
	qp.mu.Lock()
	defer qp.unlock()
	at, rtr := qp.watch.next()
	switch {
	case qp.watch.timer == nil: // it was stopped meanwhile
	case time.Now().Before(at):
		qp.watch.timer.Reset(time.Until(at))
	default:
		qp.eng.Abort(qp.watch.why(rtr, qp.eng.Unready()))
		qp.pushUnlocking()
	}
}
