// Package traffic sums up what a capture has: throughput over time, how long operations took, and which STags had most
// of the bytes.
package traffic

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/rdmap"
)

// Bounds of what is kept.
const (
	maxSTags    = 1 << 16 // that are counted apart
	maxRequests = 4096    // of a connection that wait for an answer
	longest     = time.Hour
	digits      = 3 // of a time that count
)

// kinds are the columns of throughput.
var kinds = [...]string{"Write", "Read", "Send", "other"}

// kindOf is the column of an opcode.
func kindOf(op rdmap.Opcode) int {
	info, _ := op.Info()
	switch {
	case op == rdmap.OpWrite:
		return 0
	case op == rdmap.OpReadResponse:
		return 1
	case info.QN == rdmap.QNSend && info.Name != "":
		return 2
	}
	return 3
}

// What times are kept of.
const (
	timeRead     = iota // from the Request to the whole Response
	timeAtomic          // the same
	timeTransfer        // from the first packet of a message to the last, of those with more than one segment
)

var kindsOfTime = [...]string{"Read, to the whole Response", "Atomic, to the Response", "message of several segments"}

// Stats is a [decode.Consumer] that sums up. It is not safe for concurrent use.
type Stats struct {
	decode.Ignore

	began  time.Time // of the first FPDU
	series series
	times  [len(kindsOfTime)]*hdrhistogram.Histogram
	slow   [len(kindsOfTime)]slowest
	stags  map[stag]*total
	others total // of STags beyond maxSTags
	open   map[*decode.Connection]*connection
}

// A slowest is an operation that took longest.
type slowest struct {
	took   time.Duration
	packet uint64
	label  string
}

// A stag is one of the receiver of Writes, or of the source of Reads.
type stag struct {
	connection string
	dir        capture.Dir
	stag       uint32
	read       bool
}

// A total is how much there was.
type total struct{ messages, bytes uint64 }

// A connection is what is under way on one.
type connection struct {
	label   string
	first   [2]map[message]time.Time // of messages that are not whole
	atomics [2]map[uint32]time.Time  // by their identifier
}

// A message is which of a direction's a segment belongs to.
type message struct {
	op  rdmap.Opcode
	msn uint32
}

// New returns a Stats of nothing.
func New() *Stats {
	return &Stats{stags: map[stag]*total{}, open: map[*decode.Connection]*connection{}, series: newSeries()}
}

// of returns what is known of a connection.
func (s *Stats) of(c *decode.Connection) *connection {
	known := s.open[c]
	if known == nil {
		known = &connection{label: c.Label()}
		for d := range known.first {
			known.first[d], known.atomics[d] = map[message]time.Time{}, map[uint32]time.Time{}
		}
		s.open[c] = known
	}
	return known
}

// Ended is part of decode.Consumer.
func (s *Stats) Ended(c *decode.Connection) { delete(s.open, c) }

// FPDU is part of decode.Consumer.
func (s *Stats) FPDU(c *decode.Connection, f *decode.FPDU) {
	if !f.HasSegment {
		return
	}
	if s.began.IsZero() {
		s.began = f.First.Time
	}
	s.series.add(f.Last.Time.Sub(s.began), kindOf(f.Op), uint64(len(f.Segment.Payload)))
	known := s.of(c)
	s.transfer(known, f)
	s.atomic(known, f)
	if f.Op == rdmap.OpWrite {
		s.named(stag{known.label, f.Dir, f.Segment.STag, false}, uint64(len(f.Segment.Payload)), f.Segment.Last)
	}
}

// transfer measures messages of several packets.
func (s *Stats) transfer(known *connection, f *decode.FPDU) {
	first, m := known.first[f.Dir], message{f.Op, f.Segment.MSN}
	if f.Segment.Tagged {
		m.msn = f.Segment.STag
	}
	began, under := first[m]
	switch {
	case !f.Segment.Last && !under && len(first) < maxRequests:
		first[m] = f.First.Time
	case f.Segment.Last && under:
		delete(first, m)
		s.took(timeTransfer, f.Last.Time.Sub(began), f.Last.Number, known.label)
	}
}

// atomic measures Atomic Operations.
func (s *Stats) atomic(known *connection, f *decode.FPDU) {
	id, ok := f.Op.RequestID(f.Segment.Payload)
	if !ok {
		return
	}
	info, _ := f.Op.Info()
	asked := known.atomics[f.Dir]
	if !info.Answer {
		if len(asked) < maxRequests {
			asked[id] = f.Last.Time
		}
		return
	}
	asked = known.atomics[f.Dir.Peer()]
	if began, under := asked[id]; under {
		delete(asked, id)
		s.took(timeAtomic, f.Last.Time.Sub(began), f.Last.Number, known.label)
	}
}

// Read is part of decode.Consumer.
func (s *Stats) Read(c *decode.Connection, r *decode.Read) {
	label := s.of(c).label
	s.took(timeRead, r.Latency(), r.Request.Number, label)
	s.named(stag{label, r.Dir.Peer(), r.SrcSTag, true}, uint64(r.Size), true)
}

// took takes note of a time.
func (s *Stats) took(kind int, d time.Duration, packet uint64, label string) {
	h := s.times[kind]
	if h == nil {
		h = hdrhistogram.New(1, int64(longest), digits)
		s.times[kind] = h
	}
	d = min(max(d, 0), longest)
	if h.TotalCount() == 0 || d > s.slow[kind].took {
		s.slow[kind] = slowest{d, packet, label}
	}
	_ = h.RecordValue(int64(d)) // which has room for it
}

// named counts bytes for an STag, and a message if it is whole with them.
func (s *Stats) named(key stag, bytes uint64, whole bool) {
	n := s.stags[key]
	switch {
	case n == nil && len(s.stags) >= maxSTags:
		n = &s.others
	case n == nil:
		n = new(total)
		s.stags[key] = n
	}
	n.bytes += bytes
	if whole {
		n.messages++
	}
}
