package iwarp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Traffic counts messages and their bytes of payload.
type Traffic struct {
	Messages, Bytes uint64
}

// Stats counts what a QP, or all QPs of an RNIC, have done.
type Stats struct {
	// Sent and Received count by RDMAP message.
	Sent, Received map[rdmap.Opcode]Traffic
	// FPDUs, and bytes of the TCP stream in Full Operation; where the connection carries
	// whole segments, as SCTP does, segments of DDP and their bytes.
	SentFPDUs, ReceivedFPDUs   uint64
	SentStream, ReceivedStream uint64
	// SendCalls and ReceiveCalls count the calls that have sent those bytes to the
	// connection, or found no room for them, and that have brought them: a system call each, where it is TCP. Those
	// that ask for something, or set something, are not counted.
	SendCalls, ReceiveCalls uint64
	// SpinTime is how long waits have polled the socket. Their CPU time is no more than that: other threads may have run
	// meanwhile. See QPConfig.Spin.
	SpinTime time.Duration
	// SocketWrites counts batches of segments that were built and sent together; each takes one of the
	// SendCalls, or more where the connection did not take it at once. AlignedWrites counts those of them whose
	// FPDUs were made to lie within TCP segments of the EMSS that was in force: see FPDUsAligned.
	SocketWrites, AlignedWrites uint64
	// EMSS is TCP's effective maximum segment size, 0 where the connection carries whole
	// segments, and MULPDU the largest ULPDU that is sent, in bytes and as of the latest
	// connection. They are set for a QP only.
	EMSS, MULPDU int
	// TerminatesSent and TerminatesReceived count errors by their code.
	TerminatesSent, TerminatesReceived map[rdmap.Code]uint64
	// Nudges counts zero-length RDMA Writes to silent peers.
	Nudges uint64
	// Held counts requests that were posted to a Responder's Send Queue before the
	// Initiator's first FPDU, and had to wait for it: see ErrAwaitingInitiator.
	Held uint64
	// Discarded counts messages that the program has not received when it closed a QP with QPConfig.Receives.
	Discarded uint64
	// Ahead counts segments that came ahead of order, where the lower layer brings it: a SegmentStream, as of SCTP, or
	// a Stack that is aware of MPA; over TCP those are FPDUs that were found ahead of order.
	Ahead struct {
		Placed      uint64 // segments whose payload was placed before those in front of them arrived
		PlacedBytes uint64 // bytes of payload in these
		Held        uint64 // segments that had to wait as a whole
		HeldBytes   uint64 // bytes of these
		// MostBytes is the most that were held at one time; for an RNIC the sum of each QP's. Over TCP it is
		// MPA's reassembly memory: bytes of FPDUs that were not there as a whole, or not found.
		MostBytes uint64
		Repeated  uint64 // segments that had arrived before; over TCP they are not counted
		Dropped   uint64 // segments beyond the bounds; over TCP they come again in order
	}
	// Odd counts unusual things that a peer did and that leave the connection up. A peer that makes a habit of them
	// costs more than it should, perhaps on purpose (RFC 5042, section 6.4.4).
	Odd struct {
		NotRTR uint64 // first messages that were not the RTR indication agreed on
		Early  uint64 // first messages that a Responder sent before it had received one
		// Empty counts segments without payload, of Writes or in the middle of Sends. The first seven Writes of an
		// Initiator are not counted: they may be its RTR indication, and its nudges (QPConfig.Nudge).
		Empty    uint64
		Disorder uint64 // segments of Sends and Read Responses that did not begin where the previous one ended
		Late     uint64 // Read Requests that came too late in a close of ours to be answered
	}

	// These are set for an RNIC only: how many objects of each kind exist, the entries
	// of all CQs and of all other queues, and the bytes of registered memory. See
	// Limits.
	PDs, QPs, CQs, SRQs, MRs, MWs int
	CQEntries, WorkRequests       int
	RegisteredBytes               int
	EventsDropped                 uint64 // events that were dropped before NextEvent fetched them
	Startup                       StartupStats
}

// StartupStats counts attempts to bring up connections.
type StartupStats struct {
	Started     uint64 // startup phases begun, in both roles
	Established uint64
	Rejected    uint64 // connections rejected by either side
	Fallbacks   uint64 // second attempts with revision 1
	Evicted     uint64 // half-open connections closed or turned away because there was no room
	// Failed counts all other failures by what went wrong: the text of an mpa.Failure or of a Terminate's code,
	// "given up" at the end of a context, and "other", such as what SCTP reports.
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

// startupCounters count in several places at once: an RNIC's and a Listener's.
type startupCounters []*startupCounts

func (t startupCounters) count(f func(*StartupStats)) {
	for _, c := range t {
		c.count(f)
	}
}

// failed counts a startup that did not end in a connection.
func (t startupCounters) failed(err error) {
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

// counters has the counters of a QP, or the sums of several.
type counters struct {
	engine.Stats
	driver.Counts
}

func (c *counters) add(o *counters) {
	c.Stats.Add(&o.Stats)
	c.Counts.Add(o.Counts)
}

// addEnd adds the counters of a connection that has ended. The caller holds qp.mu.
func (qp *QP) addEnd(e *driver.End) {
	if qp.past == nil {
		qp.past = new(counters)
	}
	qp.past.Stats.Add(&e.Stats)
	qp.past.Counts.Add(e.Counts)
}

// addQP adds what the QP has counted. The caller holds qp.mu.
func (c *counters) addQP(qp *QP) {
	if qp.past != nil {
		c.add(qp.past)
	}
	if conn := qp.conn.Load(); conn != nil {
		conn.AddStats(&c.Stats, &c.Counts)
	}
	if qp.machine != nil {
		qp.machine.AddStats(&c.Stats)
	}
	if qp.inbox != nil {
		c.Discarded += qp.inbox.ever.Load()
	}
}

// stats returns the counters in the public form.
func (c *counters) stats() Stats {
	e := &c.Stats
	return Stats{
		Sent: traffic(e.Sent[:]), Received: traffic(e.Received[:]),
		SentFPDUs: e.SentFPDUs, ReceivedFPDUs: e.RecvFPDUs, SentStream: e.SentStream, ReceivedStream: e.RecvStream,
		TerminatesSent: e.TerminatesSent, TerminatesReceived: e.TerminatesRecv, Nudges: e.Nudges,
		Held: e.Held, Discarded: e.Discarded, Ahead: e.Ahead, Odd: e.Odd,
		SocketWrites: e.Writes, AlignedWrites: e.AlignedWrites, SendCalls: c.SendCalls, ReceiveCalls: c.ReceiveCalls,
		SpinTime: c.Spun,
	}
}

func traffic(of []engine.Traffic) map[rdmap.Opcode]Traffic {
	m := make(map[rdmap.Opcode]Traffic)
	for op, t := range of {
		if t != (engine.Traffic{}) {
			m[rdmap.Opcode(op)] = Traffic(t)
		}
	}
	return m
}

// Stats returns the QP's counters.
func (qp *QP) Stats() Stats {
	if qp.made() != nil {
		return Stats{}
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	var c counters
	c.addQP(qp)
	s, f := c.stats(), qp.figures()
	s.EMSS, s.MULPDU = f.EMSS, f.Params.MULPDU
	return s
}

// Stats returns the sum over all QPs, including those that no longer exist.
func (r *RNIC) Stats() Stats {
	if r.made() != nil {
		return Stats{}
	}
	r.mu.Lock()
	var sum counters
	sum.add(&r.past)
	qps := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	for _, qp := range qps {
		qp.mu.Lock()
		sum.addQP(qp)
		qp.mu.Unlock()
	}
	total := sum.stats()
	total.PDs, total.QPs, total.CQs = r.ledger.inUse(resPD), len(qps), r.ledger.inUse(resCQ)
	total.SRQs, total.MRs, total.MWs = r.ledger.inUse(resSRQ), r.ledger.inUse(resMR), r.ledger.inUse(resMW)
	total.CQEntries, total.WorkRequests = r.ledger.inUse(resCQEntry), r.ledger.inUse(resWR)
	total.RegisteredBytes = r.ledger.registeredBytes()
	total.EventsDropped, total.Startup = r.events.lost(), r.startup.stats()
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
	if l.made() != nil {
		return ListenerStats{}
	}
	s := ListenerStats{StartupStats: l.counts.stats()}
	s.HalfOpen, s.Waiting = l.halfOpen.Count()
	return s
}

// MarshalJSON has the RDMAP messages and the codes of Terminates by their names, such as
// "RDMA Write", instead of numbers. All else goes by the names of the fields.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats // without this method
	if s.Startup.Failed == nil {
		s.Startup.Failed = map[string]uint64{}
	}
	return json.Marshal(struct {
		plain
		Sent, Received                     map[string]Traffic
		TerminatesSent, TerminatesReceived map[string]uint64
	}{
		plain(s), named(s.Sent), named(s.Received), named(s.TerminatesSent), named(s.TerminatesReceived),
	})
}

// named has names for keys.
func named[K interface {
	rdmap.Opcode | rdmap.Code
	String() string
}, V any](m map[K]V) map[string]V {
	names := make(map[string]V, len(m))
	for k, v := range m {
		names[k.String()] = v
	}
	return names
}

// MarshalJSON goes by the names of the fields: the role and kinds of RTR indications are words, and private data and
// the reason for a fallback are there if there are any. Without MPA it leaves out the fields that are of MPA and TCP.
func (n Negotiated) MarshalJSON() ([]byte, error) {
	type plain Negotiated // without this method
	type named struct {
		plain
		Role, RTR, OfferedRTR, AnsweredRTR, Opener string
		PrivateData                                []byte `json:",omitempty"`
		FallbackReason                             string `json:",omitempty"`
	}
	names := named{
		plain: plain(n), Role: n.Role.String(), PrivateData: n.PrivateData,
		RTR: n.RTR.String(), OfferedRTR: n.OfferedRTR.String(), AnsweredRTR: n.AnsweredRTR.String(),
		Opener: n.Opener.String(),
	}
	if n.FallbackReason != nil {
		names.FallbackReason = n.FallbackReason.Error()
	}
	if !n.noMPA {
		return json.Marshal(names)
	}
	type absent *struct{}
	return json.Marshal(struct {
		named
		Revision, PeerRevision, MarkersReceive, MarkersSend, CRC, EMSS absent `json:",omitempty"`
	}{named: names})
}

// MarshalText returns what String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText returns what String does.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText returns what String does.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// MarshalText returns what String does.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText returns what String does.
func (p CRCPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalJSON has the kind, the address and the error as text, and of the QP its number.
func (e Event) MarshalJSON() ([]byte, error) {
	t := struct {
		Kind       string
		QPNum      uint32 `json:",omitempty"`
		RemoteAddr string `json:",omitempty"`
		Err        string `json:",omitempty"`
		Count      int
	}{Kind: e.Kind.String(), QPNum: e.QPNum, Count: e.Count}
	if e.RemoteAddr != nil {
		t.RemoteAddr = e.RemoteAddr.String()
	}
	if e.Err != nil {
		t.Err = e.Err.Error()
	}
	return json.Marshal(t)
}
