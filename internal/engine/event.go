package engine

import (
	"maps"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// NoticeKind tells what a Notice is about.
type NoticeKind uint8

const (
	NoticeState             NoticeKind = iota // From, To
	NoticeTerminateReceived                   // Err is a *Failure
	NoticeTerminateSent                       // Err is a *Failure
	NoticeConnectionLost                      // Err
	NoticeBadClose                            // work was under way, or came, after Modify to Closing
	NoticeHalfClosed                          // the peer has closed its half; ours goes on
	NoticeCloseComplete
	NoticeNudge  // a zero-length RDMA Write was sent to wake up the peer
	NoticeSilent // nothing was heard of the peer for Params.Silence
)

// A Notice is something that happened to the QP as a whole.
type Notice struct {
	Kind     NoticeKind
	From, To State
	Err      error
}

func (q *Machine) notice(n Notice) {
	if q.notices.items == nil {
		q.notices.items = q.few[:0]
	}
	q.notices.add(n)
}

// Completions hands over the completions since the last call, in order. The Machine takes the memory of spare for those
// to come: who hands in what the call before has returned allocates nothing.
func (q *Machine) Completions(spare []Completion) []Completion {
	q.doneReceives = 0
	return q.done.swap(spare[:0])
}

// Notices appends the notices since the last call, in order.
func (q *Machine) Notices(to []Notice) []Notice {
	to = append(to, q.notices.items...)
	clear(q.notices.drain())
	return to
}

// Completed reports whether there are completions to hand over.
func (q *Machine) Completed() bool { return len(q.done.items) > 0 }

// A Trace describes one FPDU that was sent or received.
type Trace struct {
	Sent    bool
	Offset  uint64 // in its half connection, bytes since Full Operation began; with LayerMessages the segment's number
	Size    int    // of the FPDU or segment, bytes
	Header  ddp.Header
	Op      rdmap.Opcode
	Payload int // bytes
}

// Traffic counts the messages of an opcode, and the bytes of their payload.
type Traffic struct{ Messages, Bytes uint64 }

// Stats counts what the QP did. Bytes are those of ULP payload.
type Stats struct {
	SentFPDUs      uint64
	RecvFPDUs      uint64
	SentStream     uint64 // bytes of TCP payload in Full Operation
	RecvStream     uint64
	Writes         uint64                 // to the LLP
	AlignedWrites  uint64                 // of them, those whose FPDUs lie within TCP segments
	Sent           [rdmap.Opcodes]Traffic // by RDMAP opcode
	Received       [16]Traffic            // and the peer may try others
	TerminatesSent map[rdmap.Code]uint64
	TerminatesRecv map[rdmap.Code]uint64
	Nudges         uint64
	Held           uint64 // requests posted while the Initiator's first FPDU was awaited
	Discarded      uint64 // messages that came during a close of ours and found no receive
	Ahead          AheadStats
	Odd            Oddities
}

// Oddities count what a peer did that is unusual but leaves the connection up,
// so that a consumer can tell a peer that makes a habit of it (RFC 5042,
// section 6.4.4).
type Oddities struct { // [Z30]
	NotRTR uint64 // first messages that were not the RTR indication agreed on
	Early  uint64 // first messages of a Responder that had not received one
	// segments that carry nothing: of Writes, but for the first seven of an Initiator, or in the middle of Sends
	Empty    uint64
	Disorder uint64 // segments of Sends and Read Responses that did not go on where the last one ended
	Late     uint64 // Read Requests that came too late in a close to be answered
}

// Add adds the counters of another QP.
func (s *Stats) Add(o *Stats) {
	addTraffic(s.Sent[:], o.Sent[:])
	addTraffic(s.Received[:], o.Received[:])
	s.SentFPDUs += o.SentFPDUs
	s.RecvFPDUs += o.RecvFPDUs
	s.SentStream += o.SentStream
	s.RecvStream += o.RecvStream
	s.Writes += o.Writes
	s.AlignedWrites += o.AlignedWrites
	addCounts(&s.TerminatesSent, o.TerminatesSent)
	addCounts(&s.TerminatesRecv, o.TerminatesRecv)
	s.Nudges += o.Nudges
	s.Held += o.Held
	s.Discarded += o.Discarded
	s.Ahead.add(&o.Ahead)
	s.Odd.add(&o.Odd)
}

func addTraffic(to, t []Traffic) {
	for op := range t {
		to[op].Messages += t[op].Messages
		to[op].Bytes += t[op].Bytes
	}
}

func (o *Oddities) add(p *Oddities) {
	o.NotRTR += p.NotRTR
	o.Early += p.Early
	o.Empty += p.Empty
	o.Disorder += p.Disorder
	o.Late += p.Late
}

func addCounts(dst *map[rdmap.Code]uint64, src map[rdmap.Code]uint64) {
	for c, n := range src {
		if *dst == nil {
			*dst = make(map[rdmap.Code]uint64)
		}
		(*dst)[c] += n
	}
}

// Stats returns a copy of the counters.
func (q *Machine) Stats() Stats {
	s := q.stats
	s.TerminatesSent = maps.Clone(s.TerminatesSent)
	s.TerminatesRecv = maps.Clone(s.TerminatesRecv)
	return s
}

// AddStats adds the counters to others.
func (q *Machine) AddStats(to *Stats) { to.Add(&q.stats) }

func count(m *map[rdmap.Code]uint64, c rdmap.Code) {
	if *m == nil {
		*m = make(map[rdmap.Code]uint64)
	}
	(*m)[c]++
}

func (q *Machine) traceReceived(f *mpa.FPDU, s *ddp.Segment) {
	_, op := rdmap.ParseControl(s.RsvdULP)
	q.stats.Received[op&15].Bytes += uint64(s.PayloadLen())
	if s.Last {
		q.stats.Received[op&15].Messages++
	}
	if q.cfg.Trace != nil {
		q.cfg.Trace(Trace{Offset: f.Offset, Size: f.Size, Header: s.Header, Op: op, Payload: s.PayloadLen()})
	}
}

func (q *Machine) traceSent(offset uint64, size int, h *ddp.Header, payload int) {
	_, op := rdmap.ParseControl(h.RsvdULP)
	q.stats.SentFPDUs++
	q.stats.Sent[op].Bytes += uint64(payload)
	if h.Last {
		q.stats.Sent[op].Messages++
	}
	if q.cfg.Trace != nil {
		q.cfg.Trace(Trace{Sent: true, Offset: offset, Size: size, Header: *h, Op: op, Payload: payload})
	}
}

// Deadline returns when HandleTimeout wants to be called; zero: never.
func (q *Machine) Deadline() time.Time {
	at := q.SendFrom
	if d := q.drain; d != nil {
		at = earlier(at, earlier(d.finAt, d.aloneBy))
	}
	if q.ahead != nil {
		at = earlier(at, q.ahead.gapBy)
	}
	if q.times == (times{}) {
		return at
	}
	at = earlier(earlier(at, q.closeBy), earlier(q.nudgeAt, q.lingerBy))
	return earlier(at, earlier(q.sendBy, q.readyBy))
}

// HandleTimeout acts on deadlines that have passed.
func (q *Machine) HandleTimeout(now time.Time) {
	if !q.SendFrom.IsZero() && !now.Before(q.SendFrom) {
		q.sendEarly()
	}
	if !q.nudgeAt.IsZero() && !now.Before(q.nudgeAt) {
		q.nudge(now)
	}
	if !q.closeBy.IsZero() && !now.Before(q.closeBy) {
		q.closeTimedOut()
	}
	if !q.sendBy.IsZero() && !now.Before(q.sendBy) {
		q.sendTimedOut()
	}
	if a := q.ahead; a != nil && !a.gapBy.IsZero() && !now.Before(a.gapBy) {
		q.gapTimedOut()
	}
	if !q.readyBy.IsZero() && !now.Before(q.readyBy) {
		q.readyTimedOut()
	}
	q.advance(now) // which looks at the other times itself
}
