package engine

import (
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/layout"
	"github.com/goiwarp/iwarp/rdmap"
)

// A receiver that is not ready.
//
// A Send for which no receive is posted ends the connection (RFC 5041, section 7.1). On
// InfiniBand and RoCE it is tried again until there is one, and programs that were written for those
// count on it. With Config.Unready such a message waits here, and with it the Sends and Immediate
// Data after it, until receives are posted; then all goes on as if they had come then. What is
// no message of queue 0 has its turn meanwhile: a Write is placed, a Read is answered, and a response of the peer's
// completes its request. RFC 5040, section 5.5, allows that: it has rules for what is delivered after what was
// delivered, and a Send that waits is not.
//
// When as much waits as may, HoldsBack has the driver receive nothing more, and the LLP holds the peer
// back. What was received by then still waits: the bound is exceeded by as much as the driver receives
// at once.

// Unready bounds what waits for receives: in octets, of which each segment costs AheadCost more, and
// in messages. If both are zero, nothing waits.
type Unready struct{ Octets, Messages int }

// unready is what waits.
type unready struct {
	segments []unreadySegment // in the order of their turns
	octets   int
	messages int
	turn     *unreadySegment // that is taken again now
	deaf     bool            // nothing of queue 0 is received any more, as it would find no receive
	// The peer's half has ended, after what waits, with octets that nothing takes.
	ended  bool
	unread int
}

type unreadySegment struct {
	at      uint64
	size    int
	ulpdu   []byte
	written uint32 // by the RDMA Write in front of the message
}

// HoldsBack reports whether nothing more is to be received for now.
func (q *QP) HoldsBack() bool {
	u, bound := &q.unready, &q.cfg.Unready
	return len(u.segments) > 0 && (u.octets >= bound.Octets || u.messages >= bound.Messages)
}

// Unready reports whether something waits for receives.
func (q *QP) Unready() bool { return len(q.unready.segments) > 0 }

// awaitsReceive has a segment of a Send or of Immediate Data wait if it finds no receive, or others wait. It reports
// false for one that has its turn.
func (q *QP) awaitsReceive(f *mpa.FPDU, s *ddp.Segment) bool {
	u := &q.unready
	switch {
	case q.cfg.Unready == Unready{} || u.turn != nil:
		return false
	case u.deaf:
		return true
	case len(u.segments) == 0 && q.judgeable(s):
		return false
	case q.closing:
		u.deaf = true
		return true
	}
	q.await(f, s)
	return true
}

// judgeable reports whether a segment has a receive, or will be refused whatever is posted.
func (q *QP) judgeable(s *ddp.Segment) bool {
	return s.MSN != q.queues[rdmap.QNSend].MSN() || q.ensureReceive(s) > 0 ||
		!q.recv.Awaits() || q.ensureReceive(s) > 0 // one may have been posted before Awaits
}

func (q *QP) await(f *mpa.FPDU, s *ddp.Segment) {
	p := payload(f, s)
	w := unreadySegment{at: f.Offset, size: f.Size, ulpdu: make([]byte, len(s.Raw)+p.Len())}
	copy(w.ulpdu, s.Raw)
	p.CopyTo(w.ulpdu[len(s.Raw):])
	u := &q.unready
	if s.Last {
		w.written = q.takeWritten()
		u.messages++
	}
	u.octets += AheadCost + len(w.ulpdu)
	u.segments = append(u.segments, w)
}

// Ready takes what waits, as far as there are receives for it. It is to be called when some were posted.
func (q *QP) Ready(now time.Time) {
	u := &q.unready
	for q.state == RTS && len(u.segments) > 0 && q.takeUnready(u.segments[0]) {
	}
	if q.state == RTS && u.ended && len(u.segments) == 0 {
		u.ended = false
		q.closedHalf(u.unread)
	}
	q.watchGap(now)
	q.settle(now)
}

// takeUnready takes the segment that waits first. It reports false if that has to go on waiting.
func (q *QP) takeUnready(w unreadySegment) bool {
	s, _ := ddp.Parse(w.ulpdu) // as when it came
	if !q.judgeable(&s) {
		return false
	}
	u := &q.unready
	u.segments[0] = unreadySegment{}
	u.segments = u.segments[1:]
	u.octets -= AheadCost + len(w.ulpdu)
	if s.Last {
		u.messages--
	}
	u.turn = &w
	q.dispatch(&mpa.FPDU{Content: layout.Plain(w.ulpdu), Offset: w.at, Size: w.size}, &s)
	u.turn = nil
	return true
}

// endsAfterUnready has the end of the peer's half wait for what came before it.
func (q *QP) endsAfterUnready(unread int) bool {
	u := &q.unready
	if len(u.segments) == 0 || q.closing || q.state != RTS {
		return false
	}
	u.ended, u.unread = true, unread
	return true
}

// dropUnready gives up what waits, when the consumer closes: it posts no receives for it any more.
func (q *QP) dropUnready() {
	u := &q.unready
	if len(u.segments) == 0 {
		return
	}
	ended, unread := u.ended, u.unread
	*u = unready{deaf: true}
	if ended {
		q.closedHalf(unread)
	}
}

// forgetUnready is for a connection that has ended.
func (q *QP) forgetUnready() {
	u := &q.unready
	q.peerClosed = q.peerClosed || u.ended
	*u = unready{turn: u.turn}
}
