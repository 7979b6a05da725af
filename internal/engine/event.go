package engine

import (
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
	NoticeBadClose                            // work was under way when the connection closed
	NoticeHalfClosed                          // the peer has closed its half; what is queued is finished
	NoticeCloseComplete
	NoticeNudge // a zero-length RDMA Write was sent to wake up the peer
)

// A Notice is something that happened to the QP as a whole.
type Notice struct {
	Kind     NoticeKind
	From, To State
	Err      error
}

func (q *QP) notice(n Notice) { q.notices = append(q.notices, n) }

// Drain hands over the completions and notices since the last call, in order.
// The slices are valid until the next call of any method.
func (q *QP) Drain() ([]Completion, []Notice) {
	d, n := q.done, q.notices
	q.done, q.notices = q.done[:0], q.notices[:0]
	return d, n
}

// A Trace describes one FPDU that was sent or received.
type Trace struct {
	Sent    bool
	Offset  uint64 // in its half connection, octets since Full Operation began
	Size    int    // of the FPDU, octets
	Header  ddp.Header
	Op      rdmap.Opcode
	Payload int // octets
}

// Stats counts what the QP did. Octets are those of ULP payload.
type Stats struct {
	SentMessages   [16]uint64 // by RDMAP opcode
	SentOctets     [16]uint64
	RecvMessages   [16]uint64
	RecvOctets     [16]uint64
	SentFPDUs      uint64
	RecvFPDUs      uint64
	SentStream     uint64 // octets of TCP payload in Full Operation
	RecvStream     uint64
	TerminatesSent map[rdmap.Code]uint64
	TerminatesRecv map[rdmap.Code]uint64
	Nudges         uint64
	Odd            Oddities
}

// Oddities count what a peer did that is unusual but leaves the connection up,
// so that a consumer can tell a peer that makes a habit of it (RFC 5042,
// section 6.4.4). [Z30]
type Oddities struct {
	NotRTR   uint64 // first messages that were not the RTR indication agreed on
	Early    uint64 // first messages of a Responder that had not received one
	Empty    uint64 // segments that carry nothing: of Writes, or in the middle of Sends
	Disorder uint64 // segments of Sends that did not go on where the last one ended
}

// Stats returns a copy of the counters.
func (q *QP) Stats() Stats {
	s := q.stats
	s.TerminatesSent = copyCounts(s.TerminatesSent)
	s.TerminatesRecv = copyCounts(s.TerminatesRecv)
	return s
}

func copyCounts(m map[rdmap.Code]uint64) map[rdmap.Code]uint64 {
	c := make(map[rdmap.Code]uint64, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func count(m *map[rdmap.Code]uint64, c rdmap.Code) {
	if *m == nil {
		*m = make(map[rdmap.Code]uint64)
	}
	(*m)[c]++
}

func (q *QP) traceReceived(f mpa.FPDU, s *ddp.Segment) {
	_, op := rdmap.ParseControl(s.RsvdULP)
	q.stats.RecvOctets[op&15] += uint64(len(s.Payload))
	if s.Last {
		q.stats.RecvMessages[op&15]++
	}
	if q.cfg.Trace != nil {
		q.cfg.Trace(Trace{Offset: f.Offset, Size: f.Size, Header: s.Header, Op: op, Payload: len(s.Payload)})
	}
}

func (q *QP) traceSent(offset uint64, h *ddp.Header, payload int) {
	_, op := rdmap.ParseControl(h.RsvdULP)
	q.stats.SentFPDUs++
	q.stats.SentOctets[op&15] += uint64(payload)
	if h.Last {
		q.stats.SentMessages[op&15]++
	}
	if q.cfg.Trace != nil {
		q.cfg.Trace(Trace{Sent: true, Offset: offset, Size: int(q.tx.Offset() - offset), Header: *h, Op: op, Payload: payload})
	}
}

// Deadline returns when HandleTimeout wants to be called; zero: never.
func (q *QP) Deadline() time.Time {
	switch {
	case q.closeBy.IsZero():
		return q.nudgeAt
	case q.nudgeAt.IsZero() || q.closeBy.Before(q.nudgeAt):
		return q.closeBy
	}
	return q.nudgeAt
}

// HandleTimeout acts on deadlines that have passed.
func (q *QP) HandleTimeout(now time.Time) {
	if !q.nudgeAt.IsZero() && !now.Before(q.nudgeAt) {
		q.nudge(now)
	}
	if !q.closeBy.IsZero() && !now.Before(q.closeBy) {
		q.closeTimedOut()
	}
}
