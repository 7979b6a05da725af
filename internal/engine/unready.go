package engine

import (
	"bytes"
	"fmt"
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
// count on it. With Config.Unready such a message waits here until receives are posted, and everything that the
// peer asks for after it waits, too: Sends, Immediate Data, Writes, Read Requests, Atomic Operations. All of that has its
// turn in the order in which it was sent, as if it had come when the receives were there:
//
// RFC 5041, section 5.3: "MUST Deliver DDP Messages to the ULP in the order they were sent by the Data
// Source"; section 5.4: a message is delivered if "each preceding DDP Message has been Delivered to the ULP". [D26] [D27]
// RFC 5040, section 5.5, rule 12: Read Requests "MUST NOT start processing at the Remote Peer until they have been
// Delivered", so that a Read has what a Send before it has brought. [P40]
//
// One thing departs from these lines, as it does on RoCE, which has an order for each side's requests: what answers requests of our own,
// Read Responses and Atomic Responses, passes by what waits. A program may read from its peer before it posts the receives. And what ends
// the connection does so when it comes: a Terminate, which RFC 5040, section 5.4, has surfaced, and errors of the layers below.
//
// The payload of a Write that came ahead of order may be in its place already (section 5.3: DDP "MAY perform Placement
// of DDP Segments out of order"); then its header waits.
//
// When as much waits as may, HoldsBack has the driver receive nothing more, and the LLP holds the peer
// back. What was received by then still waits: the bound is exceeded by as much as the driver receives
// at once.
//
// The peer takes for completed what waits, so it is never dropped without a word. A consumer that closes while something waits posts
// no receive for it any more: the connection ends as without Unready.

// Unready bounds what waits for receives: in octets, of which each segment costs AheadCost more, and
// in messages. If both are zero, nothing waits.
type Unready struct{ Octets, Messages int }

// unready is what waits. The first of it is of a message of queue 0 that has no receive.
type unready struct {
	segments []unreadySegment // in the order of their turns
	octets   int
	messages int
	unread   int  // octets that nothing takes, after which the peer's half has ended
	ended    bool // it has, after what waits
	taking   bool // the first has its turn now
}

type unreadySegment struct {
	at     uint64
	size   int
	ulpdu  []byte // if the payload is in place: its header
	placed bool
	apart  int // octets that are in place
}

// HoldsBack reports whether nothing more is to be received for now.
func (q *QP) HoldsBack() bool {
	u, bound := &q.unready, &q.cfg.Unready
	return len(u.segments) > 0 && (u.octets >= bound.Octets || u.messages >= bound.Messages)
}

// Unready reports whether something waits for receives.
func (q *QP) Unready() bool { return len(q.unready.segments) > 0 }

// peerEnded reports whether the peer's half has ended, if only after what waits.
func (q *QP) peerEnded() bool { return q.peerClosed || q.unready.ended }

// awaits has a segment wait that finds no receive, or comes after others that wait. It reports
// false for one that has its turn. Nothing waits any more once the consumer closes.
func (q *QP) awaits(f *mpa.FPDU, s *ddp.Segment) bool {
	switch {
	case q.cfg.Unready == Unready{} || q.unready.taking || q.closing || q.strict || passesBy(s):
		return false
	case !q.Unready() && q.judgeable(s):
		return false
	}
	q.await(f, s)
	return true
}

// passesBy reports whether a segment does not wait for others: it answers a request of ours, or ends the connection.
func passesBy(s *ddp.Segment) bool {
	switch rdmap.OpcodeOf(&s.Header) {
	case rdmap.OpReadResponse, rdmap.OpAtomicResponse, rdmap.OpTerminate:
		return true
	}
	return false
}

// judgeable reports whether a segment needs no receive, has one, or will be refused whatever is posted.
func (q *QP) judgeable(s *ddp.Segment) bool {
	return s.Tagged || s.QN != rdmap.QNSend || s.MSN != q.queues[rdmap.QNSend].MSN() || q.ensureReceive(s) > 0 ||
		!q.recv.Awaits() || q.ensureReceive(s) > 0 // one may have been posted before Awaits
}

func (q *QP) await(f *mpa.FPDU, s *ddp.Segment) {
	w, u := waiting(f, s, q.inPlace), &q.unready
	u.segments = append(u.segments, w)
	if q.Waiting != nil {
		if err := q.Waiting.Take(w.cost()); err != nil {
			q.refuseUnready(budgetSpent, err)
			return
		}
	}
	u.octets += w.cost()
	if s.Last {
		u.messages++
	}
}

// waiting returns what of a segment is to wait.
func waiting(f *mpa.FPDU, s *ddp.Segment, placed bool) unreadySegment {
	w := unreadySegment{at: f.Offset, size: f.Size, placed: placed}
	if placed {
		w.ulpdu, w.apart = bytes.Clone(s.Raw), s.PayloadLen()
		return w
	}
	p := payload(f, s)
	w.ulpdu = make([]byte, len(s.Raw)+p.Len())
	copy(w.ulpdu, s.Raw)
	p.CopyTo(w.ulpdu[len(s.Raw):])
	return w
}

// cost is what a segment counts, in octets.
func (w *unreadySegment) cost() int { return AheadCost + len(w.ulpdu) }

// segment returns what waits as it came.
func (w *unreadySegment) segment() ddp.Segment {
	s, _ := ddp.Parse(w.ulpdu)
	s.Apart = w.apart
	return s
}

// Ready takes what waits, as far as there are receives for it, and reports whether that is anything. It is to be called when some were
// posted.
func (q *QP) Ready(now time.Time) (taken bool) {
	u := &q.unready
	for q.state == RTS && len(u.segments) > 0 && q.takeUnready(u.segments[0]) {
		taken = true
	}
	if q.state == RTS && u.ended && len(u.segments) == 0 {
		u.ended = false
		q.closedHalf(u.unread)
	}
	q.arrived(now)
	return taken
}

// takeUnready takes the segment that waits first. It reports false if that has to go on waiting.
func (q *QP) takeUnready(w unreadySegment) bool {
	s := w.segment()
	if !q.judgeable(&s) {
		return false
	}
	u := &q.unready
	u.segments[0] = unreadySegment{}
	if u.segments = u.segments[1:]; len(u.segments) == 0 {
		u.segments = nil // with the places of those that had their turn
	}
	q.giveUnready(w.cost())
	if s.Last {
		u.messages--
	}
	u.taking, q.inPlace = true, w.placed
	q.dispatch(&mpa.FPDU{Content: layout.Plain(w.ulpdu), Offset: w.at, Size: w.size}, &s)
	q.unready.taking, q.inPlace = false, false
	return true
}

func (q *QP) giveUnready(octets int) {
	q.unready.octets -= octets
	if q.Waiting != nil {
		q.Waiting.Give(octets)
	}
}

// endsAfterUnready has the end of the peer's half wait for what came before it. Where Reads are outstanding it does not: a consumer that
// waits for them would not learn that they are not answered.
func (q *QP) endsAfterUnready(unread int) bool {
	u := &q.unready
	if len(u.segments) == 0 || q.state != RTS || q.orq.Len() > 0 {
		return false
	}
	u.ended, u.unread = true, unread
	return true
}

// refuseUnready ends the connection over what waits, as if the first of it had been refused when it came. [D37]
func (q *QP) refuseUnready(why string, err error) {
	w := &q.unready.segments[0]
	s := w.segment()
	q.fail(&Failure{
		Code: rdmap.CodeDDPInvalidMSNNoBuffer, Offset: w.at, Err: err,
		Reason: fmt.Sprintf("no buffer for message %d, which has waited for a receive, and messages after it: %s", s.MSN, why),
	}, &s)
}

// closesUnready ends a connection that the consumer closes while something waits: it posts no receives for that any more.
func (q *QP) closesUnready() {
	if q.Unready() {
		q.refuseUnready("the consumer closes without a receive for them", nil)
	}
}

// forgetUnready is for a connection that has ended.
func (q *QP) forgetUnready() {
	q.peerClosed = q.peerEnded()
	q.giveUnready(q.unready.octets)
	q.unready = unready{taking: q.unready.taking}
}
