package iwarp

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// An EndTeller is a connection that ends with the program, as those of a TCP in user space do, while the system's TCP
// outlives the program. It tells when the peer has everything, and QP.Close waits for that (docs/endings.md). It may be
// a [SegmentStream], or the net.Conn of a [Stack] or of Dialer.Wrap; where a net.Conn has a method NetConn, as tls.Conn
// does, the connection below it is asked.
//
// It may have a method Acknowledged() uint32, too, which returns a different number whenever the peer has acknowledged
// more. Then QPConfig.CloseTimeout counts from the last of them, and not from Close. And it may have a method Lost()
// error, which says, when the channel of Told is closed, why the peer has not acknowledged everything: QP.Close returns
// that, as an ErrConnectionLost. It is nil if the peer has, and where that is not known. And it may have a method
// Lacks() bool, which says, when Close waits no longer, whether the peer has not acknowledged something in front of the
// end: that is an ErrConnectionLost too. All of them may call the QP, except for Close, Abort and Shutdown, which wait for
// them.
type EndTeller interface {
	// Told returns a channel that is closed when the peer has acknowledged the end of our half, and everything in front
	// of it; or when the connection is lost, so that it never will.
	Told() <-chan struct{}
}

// A farewell is the wait for the peer to have the end of our half, and for a connection's Close, which is the
// consumer's code. To the engine the connection has ended in order then. To the consumer it has when the wait is over:
// until then the state is Closing, and the notices that tell of the end are kept. The QP's lock guards it.
type farewell struct {
	cut  chan struct{} // closed to cut the wait short; nil: there is none, or it is cut
	kept []engine.Notice
}

// keeps reports whether a notice is one of an orderly end that is still to be waited for, and keeps it.
func (f *farewell) keeps(n *engine.Notice, l link) bool {
	orderly := n.Kind == engine.NoticeCloseComplete || n.Kind == engine.NoticeState && n.From == engine.Closing && n.To == engine.Idle
	if !orderly || l == nil || !l.Foreign() {
		return false
	}
	f.kept = append(f.kept, *n)
	return true
}

// parted ends the farewell: the connection is closed, and lost if there is an error. An end that the consumer has brought about
// meanwhile is another already.
func (qp *QP) parted(lost error) {
	if lost != nil {
		qp.eng.Undelivered(lost)
		qp.deliver()
	}
	qp.closingLLP, qp.closedLLP = false, true
	if qp.eng.State() == engine.Idle {
		for i := range qp.farewell.kept {
			qp.notice(&qp.farewell.kept[i])
		}
	}
	qp.farewell.kept = nil
	qp.settle()
}

// begin returns what is closed when the wait is to end.
func (f *farewell) begin() <-chan struct{} {
	f.cut = make(chan struct{})
	return f.cut
}

// hurry has the connection end without waiting for the peer.
func (f *farewell) hurry() {
	if f.cut != nil {
		close(f.cut)
		f.cut = nil
	}
}

// awaitTold waits until the peer has the end of our half, if the link can tell: where that is in user space, a program that
// ends before takes it along. It gives up when the peer has acknowledged nothing for CloseTimeout, or after CloseLimit.
// Its error is why the peer will never have it, if the link knows.
func (qp *QP) awaitTold(l link, hurried <-chan struct{}) error {
	told := l.Told()
	if told == nil {
		return nil
	}
	patience := time.NewTicker(qp.cfg.CloseTimeout)
	defer patience.Stop()
	var limit <-chan time.Time
	if qp.cfg.CloseLimit > 0 {
		limit = time.After(qp.cfg.CloseLimit)
	}
	for acked := l.Acknowledged(); ; {
		select {
		case <-told:
			return l.Lost()
		case <-hurried:
			return nil
		case <-limit:
			return lacking(l, "has not acknowledged all of ours", qp.cfg.CloseLimit)
		case <-patience.C:
		}
		now := l.Acknowledged()
		if now == acked {
			return lacking(l, "has acknowledged nothing more of ours", qp.cfg.CloseTimeout)
		}
		acked = now
	}
}

// lacking is the error of a peer that is not waited for any more, and nil if it lacks nothing but the end itself.
func lacking(l link, what string, within time.Duration) error {
	if !l.Lacks() {
		return nil
	}
	return fmt.Errorf("both halves have ended, and the peer %s within %v: %w", what, within, engine.ErrTimeout)
}
