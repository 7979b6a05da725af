package iwarp

import (
	"maps"

	"github.com/goiwarp/iwarp/internal/engine"
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

	// Of an RNIC only.
	QPs           int    // that exist
	MRs           int    // that are registered
	EventsDropped uint64 // that nobody fetched in time
	Startup       StartupStats
}

// StartupStats counts attempts to bring up connections.
type StartupStats struct {
	Started     uint64 // startup phases begun, both roles
	Established uint64
	Rejected    uint64 // by either side
	Fallbacks   uint64 // second attempts with revision 1
	Evicted     uint64 // half-open connections closed to make room
	// Failed counts the rest by what went wrong.
	Failed map[string]uint64
}

func newStats(e engine.Stats) Stats {
	s := Stats{
		Sent: traffic(&e.SentMessages, &e.SentOctets), Received: traffic(&e.RecvMessages, &e.RecvOctets),
		SentFPDUs: e.SentFPDUs, ReceivedFPDUs: e.RecvFPDUs, SentStream: e.SentStream, ReceivedStream: e.RecvStream,
		TerminatesSent: e.TerminatesSent, TerminatesReceived: e.TerminatesRecv, Nudges: e.Nudges,
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
	total.Startup = r.startup
	total.Startup.Failed = maps.Clone(r.startup.Failed)
	qps := make([]*QP, 0, len(r.qps))
	for qp := range r.qps {
		qps = append(qps, qp)
	}
	r.mu.Unlock()
	for _, qp := range qps {
		s := qp.Stats()
		total.add(&s)
	}
	total.QPs, total.MRs = len(qps), r.table.Len()
	total.EventsDropped = r.events.lost()
	return total
}

func (q *eventQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

func (r *RNIC) countStartup(f func(*StartupStats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.startup)
}
