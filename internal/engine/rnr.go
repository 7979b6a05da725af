package engine

import (
	"bytes"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A receiver that is not ready.
//
// A Send for which no receive is posted ends the connection (RFC 5041, section 7.1). On InfiniBand and RoCE it is
// tried again until there is one, and programs that were written for those count on it. With Config.RNR such a
// message waits here until receives are posted, and everything that the peer asks for after it waits, too: Sends,
// Immediate Data, Writes, Read Requests, Atomic Operations. All of that has its turn in the order in which it was
// sent, as if it had come when the receives were there:
//
// RFC 5041, section 5.3: "MUST Deliver DDP Messages to the ULP in the order they were sent by the Data Source";
// section 5.4: a message is delivered if "each preceding DDP Message has been Delivered to the ULP". [D26] [D27] RFC
// 5040, section 5.5, rule 12: Read Requests "MUST NOT start processing at the Remote Peer until they have been
// Delivered", so that a Read has what a Send before it has brought. [P40]
//
// One thing departs from these lines, as it does on RoCE, which has an order for each side's requests: what answers
// requests of our own, Read Responses and Atomic Responses, passes by what waits. A program may read from its peer
// before it posts the receives. And what ends the connection does so when it comes: a Terminate, which RFC 5040,
// section 5.4, has surfaced, and errors of the layers below.
//
// The payload of a Write that came ahead of order may be in its place already (section 5.3: DDP "MAY perform Placement
// of DDP Segments out of order"); then its header waits.
//
// When as much waits as may, HoldsBack has the driver receive nothing more, and the LLP holds the peer
// back. What was received by then still waits: the bound is exceeded by as much as the driver receives
// at once.
//
// The peer takes for completed what waits, so it is never dropped without a word. A consumer that closes while
// something waits posts no receive for it any more: the connection ends as without Config.RNR. With Config.Discard the
// consumer has said that it leaves messages unread when it closes, as a socket does: they are discarded and counted.

// RNR bounds what waits for receives: in bytes, of which each segment costs AheadCost more, and
// in messages. If both are zero, nothing waits. Wait bounds for how long nothing of it is taken; zero: for ever.
type RNR struct {
	Bytes, Messages int
	Wait            time.Duration
}

// An rnrQueue is what waits. The first of it is of a message of queue 0 that has no receive.
type rnrQueue struct {
	segments []rnrSegment // in the order of their turns
	bytes    int
	messages int
	unread   int  // bytes that nothing takes, after which the peer's half has ended
	ended    bool // it has, after what waits
	taking   bool // the first has its turn now
	took     bool // one has had it since watchReady looked
}

type rnrSegment struct {
	at     uint64
	size   int
	ulpdu  []byte // if the payload is in place: its header
	placed bool
	apart  int // bytes that are in place
}

// HoldsBack reports whether nothing more is to be received for now.
func (q *Machine) HoldsBack() bool {
	u, bound := &q.rnr, &q.cfg.RNR
	return len(u.segments) > 0 && (u.bytes >= bound.Bytes || u.messages >= bound.Messages)
}

// ReceiverNotReady reports whether something waits for receives.
func (q *Machine) ReceiverNotReady() bool { return len(q.rnr.segments) > 0 }

// peerEnded reports whether the peer's half has ended, if only after what waits.
func (q *Machine) peerEnded() bool { return q.peerClosed || q.rnr.ended }

// awaits has a segment wait that finds no receive, or comes after others that wait. It reports
// false for one that has its turn. Nothing waits any more once the consumer closes.
func (q *Machine) awaits(f *mpa.FPDU, s *ddp.Segment) bool {
	switch {
	case q.cfg.RNR == RNR{} || q.rnr.taking || q.closing() || q.strict || passesBy(s):
		return false
	case !q.ReceiverNotReady() && q.judgeable(s):
		return false
	}
	q.await(f, s)
	return true
}

// passesBy reports whether a segment does not wait for others: it answers a request of ours, or ends the connection.
func passesBy(s *ddp.Segment) bool {
	op := rdmap.OpcodeOf(&s.Header)
	return op == rdmap.OpTerminate || op.Answers()
}

// judgeable reports whether a segment needs no receive, has one, or will be refused whatever is posted.
func (q *Machine) judgeable(s *ddp.Segment) bool {
	return s.Tagged || s.QN != rdmap.QNSend || s.MSN != q.queues[rdmap.QNSend].MSN() || q.ensureReceive(s) > 0 ||
		!q.recv.Awaits() || q.ensureReceive(s) > 0 // one may have been posted before Awaits
}

func (q *Machine) await(f *mpa.FPDU, s *ddp.Segment) {
	w, u := waiting(f, s, q.inPlace), &q.rnr
	u.segments = append(u.segments, w)
	if q.Waiting != nil {
		if err := q.Waiting.Take(w.cost()); err != nil {
			q.refuseRNR(budgetSpent, err)
			return
		}
	}
	u.bytes += w.cost()
	if s.Last {
		u.messages++
	}
}

// waiting returns what of a segment is to wait.
func waiting(f *mpa.FPDU, s *ddp.Segment, placed bool) rnrSegment {
	w := rnrSegment{at: f.Offset, size: f.Size, placed: placed}
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

// cost is what a segment counts, in bytes.
func (w *rnrSegment) cost() int { return AheadCost + len(w.ulpdu) }

// segment returns what waits as it came.
func (w *rnrSegment) segment() ddp.Segment {
	s, _ := ddp.Parse(w.ulpdu)
	s.Apart = w.apart
	return s
}

// Ready takes what waits, as far as there are receives for it, and reports whether that is anything. It is to be
// called when some were posted.
func (q *Machine) Ready(now time.Time) (taken bool) {
	u := &q.rnr
	for q.state == RTS && len(u.segments) > 0 && q.takeRNR(u.segments[0]) {
		taken = true
	}
	if q.state == RTS && u.ended && len(u.segments) == 0 {
		u.ended = false
		q.closedHalf(u.unread)
	}
	q.arrived(now)
	return taken
}

// takeRNR takes the segment that waits first. It reports false if that has to go on waiting.
func (q *Machine) takeRNR(w rnrSegment) bool {
	s := w.segment()
	if !q.judgeable(&s) {
		return false
	}
	u := &q.rnr
	u.segments[0] = rnrSegment{}
	if u.segments = u.segments[1:]; len(u.segments) == 0 {
		u.segments = nil // with the places of those that had their turn
	}
	q.releaseRNR(w.cost())
	if s.Last {
		u.messages--
	}
	u.took, u.taking, q.inPlace = true, true, w.placed
	q.dispatch(&mpa.FPDU{Content: layout.Plain(w.ulpdu), Offset: w.at, Size: w.size}, &s)
	q.rnr.taking, q.inPlace = false, false
	return true
}

func (q *Machine) releaseRNR(n int) {
	q.rnr.bytes -= n
	if q.Waiting != nil {
		q.Waiting.Give(n)
	}
}

// endsAfterRNR has the end of the peer's half wait for what came before it. Where Reads are outstanding it does
// not: a consumer that waits for them would not learn that they are not answered.
func (q *Machine) endsAfterRNR(unread int) bool {
	u := &q.rnr
	if len(u.segments) == 0 || q.state != RTS || q.orq.Len() > 0 {
		return false
	}
	u.ended, u.unread = true, unread
	return true
}

// refuseRNR ends the connection over what waits, as if the first of it had been refused when it came. [D37]
func (q *Machine) refuseRNR(why string, err error) {
	w := &q.rnr.segments[0]
	s := w.segment()
	q.fail(&Failure{
		Code: rdmap.CodeDDPInvalidMSNNoBuffer, Offset: w.at, Err: err,
		Reason: fmt.Sprintf("no buffer for message %d, which has waited for a receive, and messages after it: %s",
			s.MSN, why),
	}, &s)
}

// closesRNR ends a connection that the consumer closes while something waits: it posts no receives for that any
// more. With Config.Discard it goes on without them.
func (q *Machine) closesRNR(now time.Time) {
	switch {
	case q.cfg.Discard:
		q.discarding = true
		q.Ready(now)
	case q.ReceiverNotReady():
		q.refuseRNR("the consumer closes without a receive for them", nil)
	}
}

// forgetRNR is for a connection that has ended.
func (q *Machine) forgetRNR() {
	q.peerClosed = q.peerEnded()
	q.releaseRNR(q.rnr.bytes)
	q.rnr, q.readyBy = rnrQueue{taking: q.rnr.taking}, time.Time{}
}
