package iwarp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// Traffic counts messages and their octets of payload.
type Traffic struct {
	Messages, Octets uint64
}

// Stats counts what a QP, or all QPs of an RNIC, have done.
type Stats struct {
	// Sent and Received count by RDMAP message.
	Sent, Received map[rdmap.Opcode]Traffic
	// FPDUs, and octets of the TCP stream in Full Operation; where the connection carries
	// whole segments, as SCTP does, segments of DDP and their octets.
	SentFPDUs, ReceivedFPDUs   uint64
	SentStream, ReceivedStream uint64
	// SendCalls and ReceiveCalls count the calls that have sent those octets to the
	// connection, or found no room for them, and that have brought them: a system call each, where it is TCP. Those
	// that ask for something, or set something, are not counted.
	SendCalls, ReceiveCalls uint64
	// SocketWrites counts batches of segments that were built and sent together; each takes one of the
	// SendCalls, or more where the connection did not take it at once. AlignedWrites counts those of them whose
	// FPDUs were made to lie within TCP segments of the EMSS that was in force: see FPDUsAligned.
	SocketWrites, AlignedWrites uint64
	// EMSS is TCP's effective maximum segment size, 0 where the connection carries whole
	// segments, and MULPDU the largest ULPDU that is sent, in octets and as of the latest
	// connection. They are set for a QP only.
	EMSS, MULPDU int
	// TerminatesSent and TerminatesReceived count errors by their code.
	TerminatesSent, TerminatesReceived map[rdmap.Code]uint64
	// Nudges counts zero-length RDMA Writes to silent peers.
	Nudges uint64
	// Held counts requests that were posted to a Responder's Send Queue before the
	// Initiator's first FPDU, and had to wait for it: see ErrAwaitingInitiator.
	Held uint64
	// Ahead counts what came ahead of order, where the lower layer brings it: a SegmentStream, SCTP, or a Stack
	// that is aware of MPA.
	Ahead Ahead
	// Odd counts unusual things that peers did.
	Odd Oddities

	// These are set for an RNIC only: how many objects of each kind exist, the entries
	// of all CQs and of all other queues, and the octets of registered memory. See
	// Limits.
	PDs, QPs, CQs, SRQs, MRs, MWs int
	CQEntries, WorkRequests       int
	RegisteredOctets              int
	EventsDropped                 uint64 // events that were dropped before NextEvent fetched them
	Startup                       StartupStats
	SCTP                          SCTPStats
}

// SCTPStats count messages in SCTP associations that a peer should not have sent in that way, and that do no harm. They are not
// counted for a QP, as an association may have several sessions, or none yet.
type SCTPStats struct {
	Ordered uint64 // messages without the U flag: RFC 5043, section 10
	Dropped uint64 // messages on streams without a session
}

// sctpCounts are the SCTPStats of an RNIC.
type sctpCounts struct{ ordered, dropped atomic.Uint64 }

func (c *sctpCounts) count(s sctp.Stats) {
	c.ordered.Add(s.Ordered)
	c.dropped.Add(s.Dropped)
}

// Oddities count unusual things that a peer did and that leave the connection up. A
// peer that makes a habit of them costs more than it should, perhaps on purpose (RFC
// 5042, section 6.4.4).
type Oddities struct {
	NotRTR uint64 // first messages that were not the RTR indication agreed on
	Early  uint64 // first messages that a Responder sent before it had received one
	// Empty counts segments without payload, of Writes or in the middle of Sends. The first seven Writes of an Initiator
	// are not counted: they may be its RTR indication, and its nudges (QPConfig.Nudge).
	Empty    uint64
	Disorder uint64 // segments of Sends that did not begin where the previous one ended
	Late     uint64 // Read Requests that came too late in a close of ours to be answered
}

// Ahead counts segments that did not come in order; over TCP those are FPDUs that were found ahead of order.
type Ahead struct {
	Placed       uint64 // segments whose payload was placed before those in front of them arrived
	PlacedOctets uint64 // octets of payload in these
	Held         uint64 // segments that had to wait as a whole
	HeldOctets   uint64 // octets of these
	// MostOctets is the most that were held at one time; for an RNIC the sum of each QP's. Over TCP it is
	// MPA's reassembly memory: octets of FPDUs that were not there as a whole, or not found.
	MostOctets uint64
	Repeated   uint64 // segments that had arrived before; over TCP they are not counted
	Dropped    uint64 // segments beyond the bounds; over TCP they come again in order
}

// StartupStats counts attempts to bring up connections.
type StartupStats struct {
	Started     uint64 // startup phases begun, in both roles
	Established uint64
	Rejected    uint64 // connections rejected by either side
	Fallbacks   uint64 // second attempts with revision 1
	Evicted     uint64 // half-open connections closed or turned away because there was no room
	// Failed counts all other failures by what went wrong: the text of an mpa.Failure or of a Terminate's code,
	// "given up" at the end of a context, and "other", as what SCTP says of itself.
	Failed map[string]uint64
}

type startupCounts struct {
	mu sync.Mutex
	s  StartupStats
}

func (c *startupCounts) count(f func(*StartupStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *startupCounts) stats() StartupStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Failed = maps.Clone(s.Failed)
	return s
}

// A tally counts in several places at once: an RNIC's and a Listener's.
type tally []*startupCounts

func (t tally) count(f func(*StartupStats)) {
	for _, c := range t {
		c.count(f)
	}
}

// failed counts a startup that did not end in a connection.
func (t tally) failed(err error) {
	kind := failureKind(err)
	t.count(func(s *StartupStats) {
		if kind == "" {
			s.Rejected++
			return
		}
		if s.Failed == nil {
			s.Failed = make(map[string]uint64)
		}
		s.Failed[kind]++
	})
}

// failureKind names what made a startup fail; it is empty for a rejection.
func failureKind(err error) string {
	var s *mpa.StartupError
	var t *TerminateError
	switch {
	case errors.As(err, new(*mpa.RejectError)), errors.As(err, new(*VerifyError)):
		return ""
	case errors.As(err, &s):
		return s.Failure.String()
	case errors.As(err, &t):
		return t.Code.String()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "other"
}

// counters are what a QP counts, or several.
type counters struct {
	engine.Stats
	sendCalls, receiveCalls uint64
}

func (c *counters) add(o *counters) {
	c.Stats.Add(&o.Stats)
	c.sendCalls += o.sendCalls
	c.receiveCalls += o.receiveCalls
}

// addOf adds those of a QP. The caller holds qp.mu.
func (c *counters) addOf(qp *QP) {
	qp.eng.AddStats(&c.Stats)
	c.sendCalls += qp.sendCalls
	c.receiveCalls += qp.receiveCalls
}

// counters are the QP's. The caller holds qp.mu.
func (qp *QP) counters() counters {
	return counters{qp.eng.Stats(), qp.sendCalls, qp.receiveCalls}
}

// stats is the public form.
func (c *counters) stats() Stats {
	e := &c.Stats
	return Stats{
		Sent: traffic(e.SentMessages[:], e.SentOctets[:]), Received: traffic(e.RecvMessages[:], e.RecvOctets[:]),
		SentFPDUs: e.SentFPDUs, ReceivedFPDUs: e.RecvFPDUs, SentStream: e.SentStream, ReceivedStream: e.RecvStream,
		TerminatesSent: e.TerminatesSent, TerminatesReceived: e.TerminatesRecv, Nudges: e.Nudges, Held: e.Held, Ahead: Ahead(e.Ahead), Odd: Oddities(e.Odd),
		SocketWrites: e.Writes, AlignedWrites: e.AlignedWrites, SendCalls: c.sendCalls, ReceiveCalls: c.receiveCalls,
	}
}

func traffic(messages, octets []uint64) map[rdmap.Opcode]Traffic {
	m := make(map[rdmap.Opcode]Traffic)
	for op := range messages {
		if messages[op] > 0 || octets[op] > 0 {
			m[rdmap.Opcode(op)] = Traffic{messages[op], octets[op]}
		}
	}
	return m
}

// Stats returns the QP's counters.
func (qp *QP) Stats() Stats {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	c := qp.counters()
	s := c.stats()
	s.EMSS, s.MULPDU = qp.segments.emss, qp.eng.Negotiated().MULPDU
	return s
}

// Stats returns the sum over all QPs, including those that no longer exist.
func (r *RNIC) Stats() Stats {
	r.mu.Lock()
	var sum counters
	sum.add(&r.past)
	qps := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	for _, qp := range qps {
		qp.mu.Lock()
		sum.addOf(qp)
		qp.mu.Unlock()
	}
	total := sum.stats()
	total.PDs, total.QPs, total.CQs = r.ledger.inUse(resPD), len(qps), r.ledger.inUse(resCQ)
	total.SRQs, total.MRs, total.MWs = r.ledger.inUse(resSRQ), r.ledger.inUse(resMR), r.ledger.inUse(resMW)
	total.CQEntries, total.WorkRequests = r.ledger.inUse(resCQEntry), r.ledger.inUse(resWR)
	total.RegisteredOctets = r.ledger.inUse(resOctet)
	total.EventsDropped, total.Startup = r.events.lost(), r.startup.stats()
	total.SCTP = SCTPStats{r.sctp.ordered.Load(), r.sctp.dropped.Load()}
	return total
}

func (q *eventQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// ListenerStats counts what a Listener has seen.
type ListenerStats struct {
	HalfOpen int // connections that are not up yet
	Waiting  int // those of them whose Request waits for Accept
	StartupStats
}

// Stats returns the Listener's own counters. Its RNIC counts the same, together with
// those of its other Listeners and Dialers.
func (l *Listener) Stats() ListenerStats {
	s := ListenerStats{StartupStats: l.counts.stats()}
	s.HalfOpen, s.Waiting = l.places.count()
	return s
}
