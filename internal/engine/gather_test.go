package engine

import (
	"bytes"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// sendsOf posts n Sends whose FPDUs are of so many bytes.
func (p *peer) sendsOf(n, fpdu int) {
	r := p.region(make([]byte, fpdu), remoteAll)
	for id := range uint64(n) {
		p.post(work(id, OpSend, all(r, fpdu-24)))
	}
}

// Where short messages fill TCP segments together, a Gather ends with the last segment that it
// has room for: each segment that is sent is full.
//
// Proves S04.
func TestGatherOfFullSegments(t *testing.T) {
	for _, c := range []struct {
		emss, fpdu int
		want       int // bytes of a Gather
	}{
		{8960, 8960 / 5, 8 * 8960}, // a ninth would exceed 72 KiB
		{8192, 8192 / 4, 72 << 10}, // which nine are
	} {
		p := initiator(t, aligned(c.emss, false), func(s *setup) { s.SendDepth = 200 })
		p.sendsOf(200, c.fpdu)
		for p.Machine.Pending() {
			b := slices.Concat(p.Machine.Output(p.clock, p.g)...)
			p.Machine.Sent(p.clock, p.g, len(b))
			if p.Machine.Pending() && len(b) != c.want {
				t.Errorf("EMSS %d: a Gather of %d bytes, want %d", c.emss, len(b), c.want)
			}
		}
	}
}

// A Gather has a bounded number of records, although each message leaves its segment short.
func TestGatherOfFullRecords(t *testing.T) {
	const most = maxRecords + 1 // with that which its last FPDU begins
	p := initiator(t, aligned(536, false), func(s *setup) { s.SendDepth = 200 })
	p.sendsOf(200, 536-96) // a rest of 96 bytes has room for less than the smallest MULPDU
	if n := p.sendGather(); n != most {
		t.Errorf("%d records, want %d", n, most)
	}
}

// A Gather that has room for two records of what TCP takes as one piece takes both.
func TestGatherOfTwoRecords(t *testing.T) {
	p := initiator(t, aligned(4096, false), func(s *setup) { s.Record = gatherBytes / 2 })
	p.post(work(1, OpWrite, all(p.region(make([]byte, 1<<20), remoteAll), 1<<20)))
	if n := p.sendGather(); n != 2 {
		t.Errorf("%d records", n)
	}
}

// The LLP may take exactly one record: what is left begins with the next.
func TestRecordTaken(t *testing.T) {
	p := initiator(t, aligned(536, false))
	p.sendsOf(3, 536-96)
	records := p.Machine.Output(p.clock, p.g)
	next := bytes.Clone(records[1])
	p.Machine.Sent(p.clock, p.g, len(records[0]))
	if left := p.Machine.Output(p.clock, p.g); len(left) != 2 || !bytes.Equal(left[0], next) {
		t.Errorf("%d records are left, the first of %d bytes", len(left), len(left[0]))
	}
}

// A Send that was placed ahead of its turn is judged in its turn by the memory that it went to,
// and by no other of its receive: an element that was invalidated meanwhile fails the segment
// that has bytes in it, at whichever end.
//
// Proves D26, P34.
func TestScatteredAhead(t *testing.T) {
	const size = 8 // of an element, from offset 2 of 12
	for _, c := range []struct {
		mo, n int
		gone  []int // elements; it fails if one of them is invalidated
	}{
		{0, size, []int{0}}, {0, size + 1, []int{0, 1}}, {1, size - 1, []int{0}}, {1, size, []int{0, 1}},
		{size - 1, 1, []int{0}}, {size, 1, []int{1}}, {size, size, []int{1}}, {size + 3, size, []int{1, 2}},
		{size - 1, size + 2, []int{0, 1, 2}}, {2 * size, size, []int{2}}, {3*size - 1, 1, []int{2}},
	} {
		for gone := range 3 {
			s := overMessages(t, mpa.RoleInitiator)
			if failed := s.scattered(size, gone, send(1,
				numbered(c.n)).at(c.mo).more()); failed != slices.Contains(c.gone, gone) {
				t.Errorf("%d bytes at %d, without element %d: %v", c.n, c.mo, gone, s.Machine.Cause())
			}
		}
	}
}

// scattered has a segment of a Send be placed ahead of its turn in a receive of three elements of so many bytes, of
// which one is gone when the segment has its turn, and reports whether it fails then.
func (s *sender) scattered(size, gone int, f fpdu) bool {
	s.Helper()
	var sgl []SGE
	for range 3 {
		sgl = append(sgl, SGE{Region: s.region(make([]byte, size+4), memory.LocalWrite), Offset: 2, Length: size})
	}
	s.receive(1, sgl...)
	s.arrives(0, write(1, 0, nil)) // from here on the QP knows where Sends go
	s.arrives(2, f)
	if s.Machine.Stats().Ahead.Placed != 1 {
		s.Fatal("not placed ahead")
	}
	s.Machine.cfg.Memory.LocalInvalidate(sgl[gone].Region)
	s.arrives(1, write(1, 0, nil))
	return s.Machine.Cause() != nil
}
