package iwarp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Traffic counts messages and their octets of payload.
type Traffic struct {
	Messages, Octets uint64
}

// Stats counts what a QP, or all QPs of an RNIC, have done.
type Stats struct {
	// Sent and Received count by RDMAP message.
	Sent, Received map[rdmap.Opcode]Traffic
	// FPDUs, and octets of the TCP stream in Full Operation.
	SentFPDUs, ReceivedFPDUs   uint64
	SentStream, ReceivedStream uint64
	// TerminatesSent and TerminatesReceived count errors by their code.
	TerminatesSent, TerminatesReceived map[rdmap.Code]uint64
	// Nudges counts zero-length RDMA Writes to silent peers.
	Nudges uint64
	// Odd counts what peers did that is unusual.
	Odd Oddities

	// Of an RNIC only: what exists of each kind of object, the entries of all CQs and
	// of all other queues, and the octets that are registered. See Limits.
	PDs, QPs, CQs, SRQs, MRs int
	CQEntries, WorkRequests  int
	RegisteredOctets         int
	EventsDropped            uint64 // that nobody fetched in time
	Startup                  StartupStats
}

// Oddities count what a peer did that is unusual but leaves the connection up: a
// peer that makes a habit of it costs more than it should, and may mean it (RFC
// 5042, section 6.4.4). [Z30]
type Oddities struct {
	NotRTR   uint64 // first messages that were not the RTR indication agreed on
	Early    uint64 // first messages of a Responder that had not received one
	Empty    uint64 // segments that carry nothing: of Writes, or in the middle of Sends
	Disorder uint64 // segments of Sends that did not go on where the last one ended
}

func (o *Oddities) add(p Oddities) {
	o.NotRTR += p.NotRTR
	o.Early += p.Early
	o.Empty += p.Empty
	o.Disorder += p.Disorder
}

// StartupStats counts attempts to bring up connections.
type StartupStats struct {
	Started     uint64 // startup phases begun, both roles
	Established uint64
	Rejected    uint64 // by either side
	Fallbacks   uint64 // second attempts with revision 1
	Evicted     uint64 // half-open connections closed, or turned away, for want of room
	// Failed counts the rest by what went wrong.
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

// failureKind names a failed startup; a rejection has no name.
func failureKind(err error) string {
	var s *mpa.StartupError
	var t *TerminateError
	switch {
	case errors.As(err, new(*mpa.RejectError)):
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

func newStats(e engine.Stats) Stats {
	s := Stats{
		Sent: traffic(&e.SentMessages, &e.SentOctets), Received: traffic(&e.RecvMessages, &e.RecvOctets),
		SentFPDUs: e.SentFPDUs, ReceivedFPDUs: e.RecvFPDUs, SentStream: e.SentStream, ReceivedStream: e.RecvStream,
		TerminatesSent: e.TerminatesSent, TerminatesReceived: e.TerminatesRecv, Nudges: e.Nudges, Odd: Oddities(e.Odd),
	}
	return s
}

func traffic(messages, octets *[16]uint64) map[rdmap.Opcode]Traffic {
	m := make(map[rdmap.Opcode]Traffic)
	for op := range messages {
		if messages[op] > 0 || octets[op] > 0 {
			m[rdmap.Opcode(op)] = Traffic{messages[op], octets[op]}
		}
	}
	return m
}

// add adds the counters of a QP.
func (s *Stats) add(o *Stats) {
	addTraffic(&s.Sent, o.Sent)
	addTraffic(&s.Received, o.Received)
	s.SentFPDUs += o.SentFPDUs
	s.ReceivedFPDUs += o.ReceivedFPDUs
	s.SentStream += o.SentStream
	s.ReceivedStream += o.ReceivedStream
	addCounts(&s.TerminatesSent, o.TerminatesSent)
	addCounts(&s.TerminatesReceived, o.TerminatesReceived)
	s.Nudges += o.Nudges
	s.Odd.add(o.Odd)
}

func addTraffic(dst *map[rdmap.Opcode]Traffic, src map[rdmap.Opcode]Traffic) {
	if *dst == nil {
		*dst = make(map[rdmap.Opcode]Traffic)
	}
	for op, t := range src {
		d := (*dst)[op]
		(*dst)[op] = Traffic{d.Messages + t.Messages, d.Octets + t.Octets}
	}
}

func addCounts(dst *map[rdmap.Code]uint64, src map[rdmap.Code]uint64) {
	if *dst == nil {
		*dst = make(map[rdmap.Code]uint64)
	}
	for c, n := range src {
		(*dst)[c] += n
	}
}

// Stats returns the QP's counters.
func (qp *QP) Stats() Stats {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return newStats(qp.eng.Stats())
}

// Stats returns the sum over all QPs, those included that are no more.
func (r *RNIC) Stats() Stats {
	r.mu.Lock()
	var total Stats
	total.add(&r.past)
	qps := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	for _, qp := range qps {
		s := qp.Stats()
		total.add(&s)
	}
	total.PDs, total.QPs, total.CQs = r.ledger.inUse(resPD), len(qps), r.ledger.inUse(resCQ)
	total.SRQs, total.MRs = r.ledger.inUse(resSRQ), r.ledger.inUse(resMR)
	total.CQEntries, total.WorkRequests = r.ledger.inUse(resCQEntry), r.ledger.inUse(resWR)
	total.RegisteredOctets = r.ledger.inUse(resOctet)
	total.EventsDropped, total.Startup = r.events.lost(), r.startup.stats()
	return total
}

func (q *eventQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
