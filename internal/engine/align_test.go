package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// aligned has FPDUs aligned with the segments of a TCP of this EMSS.
func aligned(emss int, marked bool) func(*setup) {
	return func(s *setup) {
		s.EMSS, s.Record, s.MULPDU, s.MarkersSend = emss, 64<<10, layout.MULPDU(emss, marked), marked
	}
}

// A wire cuts what a QP sends as TCP does, and looks at each segment.
type wire struct {
	testing.TB
	rx       mpa.Reader
	emss     int
	mulpdu   int
	segments int
	sizes    []int // of the segments
	short    int   // segments that are not full, in front of others of the same write
	fpdus    int
	bytes    int
}

// write takes the records of one write.
func (w *wire) write(records [][]byte) {
	w.Helper()
	for i, b := range records {
		for len(b) > 0 {
			n := min(len(b), w.emss)
			if n < w.emss && i < len(records)-1 {
				w.short++
			}
			w.segment(b[:n])
			b = b[n:]
		}
	}
}

// segment expects whole FPDUs in a TCP segment.
func (w *wire) segment(b []byte) {
	w.Helper()
	w.segments++
	w.sizes = append(w.sizes, len(b))
	w.bytes += len(b)
	for len(b) > 0 {
		f, n, err := w.rx.Next(b)
		if err != nil || n == 0 {
			w.Fatalf("segment %d: %d bytes are no whole FPDU: %v", w.segments, len(b), err)
		}
		if len(f.ULPDU) > w.mulpdu {
			w.Fatalf("segment %d: a ULPDU of %d bytes, MULPDU %d", w.segments, len(f.ULPDU), w.mulpdu)
		}
		w.fpdus++
		b = b[n:]
	}
}

// drained takes all that a QP has to send.
func (w *wire) drained(p *peer) {
	w.Helper()
	for p.Machine.Pending() {
		v := p.Machine.Output(*p.now, p.g)
		n := 0
		for _, b := range v {
			n += len(b)
		}
		if n == 0 {
			break
		}
		w.write(v)
		p.Machine.Sent(*p.now, p.g, n)
	}
	p.collectOutputs()
}

// Proves S01, S04, S06, S07: each TCP segment begins with an FPDU and holds whole ones, whatever
// the EMSS is and wherever markers fall, and bulk fills its segments; no ULPDU exceeds
// MULPDU.
func TestHeaderAlignment(t *testing.T) {
	for _, emss := range []int{536, 1398, 1440, 1447, 1448, 1460, 8948, 8949, 32768, 65483} {
		for _, marked := range []bool{false, true} {
			t.Run(fmt.Sprintf("EMSS %d, markers %v", emss, marked), func(t *testing.T) {
				p := initiator(t, aligned(emss, marked))
				r := p.region(make([]byte, 1<<20), remoteAll)
				w := &wire{TB: t, rx: mpa.NewReader(marked, true), emss: emss, mulpdu: p.Machine.MULPDU}
				p.post(work(1, OpWrite, all(r, 1<<20)))
				w.drained(p)
				most := 1 // of a write of 64 KiB, where each segment is filled
				if marked || emss%4 != 0 || emss > layout.MaxMULPDU {
					most = w.segments
				}
				if w.short > most || w.segments > w.bytes/(emss-8)+w.short+20 {
					t.Errorf("%d bytes in %d segments, %d of them short", w.bytes, w.segments, w.short)
				}
				if marked && emss%4 == 0 && emss < 32768 && w.short > w.segments/20 {
					t.Errorf("%d of %d segments are short", w.short, w.segments)
				}
				id := uint64(2)
				for n := 1; n < 70000; n += n/3 + 13 {
					for _, op := range []Op{OpSend, OpWrite} {
						p.post(work(id, op, all(r, n)))
						id++
					}
					if id%3 == 0 {
						w.drained(p)
					}
				}
				w.drained(p)
				if s := p.Machine.Stats(); s.AlignedWrites != s.Writes || s.Writes == 0 {
					t.Errorf("%d of %d writes are aligned", s.AlignedWrites, s.Writes)
				}
			})
		}
	}
}

// Read Responses are cut like Writes, and small FPDUs in between do not harm.
//
// Proves S04.
func TestHeaderAlignmentOfResponses(t *testing.T) {
	const emss = 1448
	p := initiator(t, aligned(emss, false), func(s *setup) { s.IRD = 8 })
	r := p.region(make([]byte, 1<<20), remoteAll)
	w := &wire{TB: t, rx: mpa.NewReader(false, true), emss: emss, mulpdu: p.Machine.MULPDU}
	for msn := uint32(1); msn <= 8; msn++ {
		p.send(request(msn, rdmap.ReadRequest{SinkSTag: 1, Size: 10000 * msn, SrcSTag: r.STag()}))
		p.post(work(uint64(msn), OpSend, all(r, 100)))
	}
	w.drained(p)
	if w.bytes < 8*9*5000 || w.segments > w.bytes/emss+10 {
		t.Errorf("%d bytes in %d segments", w.bytes, w.segments)
	}
}

// RFC 5044, section 4.5: "MPA MUST NOT provide a MULPDU smaller than 128." A message is not
// cut to fill less room than that, but one that fits is put there.
//
// Proves S06.
func TestHeaderAlignmentPacking(t *testing.T) {
	const emss = 1448
	for _, c := range []struct { // FPDUs of Writes take 20 bytes beside their payload
		what  string
		first int // bytes of the Write that begins the segment
		then  int
		fpdus int
		sizes []int // of segments
	}{
		{"both fit", 1000, 300, 2, []int{1340}},
		{"the second is cut", 1000, 1000, 3, []int{1448, 612}},
		{"room for a ULPDU of 130 bytes", 1448 - 20 - 136, 200, 3, []int{1448, 104}},
		{"room for one of 126 bytes", 1448 - 20 - 132, 200, 2, []int{1316, 220}},
		{"room for one of 126 bytes, and the second fits", 1448 - 20 - 132, 100, 2, []int{1436}},
	} {
		p := initiator(t, aligned(emss, false))
		r := p.region(make([]byte, 4000), remoteAll)
		w := &wire{TB: t, rx: mpa.NewReader(false, true), emss: emss, mulpdu: p.Machine.MULPDU}
		p.post(work(1, OpWrite, all(r, c.first)))
		p.post(work(2, OpWrite, all(r, c.then)))
		w.drained(p)
		if w.fpdus != c.fpdus || !slices.Equal(w.sizes, c.sizes) {
			t.Errorf("%s: %d FPDUs in segments of %d, want %d in %d", c.what, w.fpdus, w.sizes, c.fpdus, c.sizes)
		}
	}
}

// An EMSS that is too small for a MULPDU of 128 bytes is not followed, and one that has
// changed is followed with the next write.
//
// Proves S02, S03.
func TestHeaderAlignmentOfOtherEMSS(t *testing.T) {
	p := initiator(t, aligned(100, false))
	r := p.region(make([]byte, 1<<20), remoteAll)
	w := &wire{TB: t, rx: mpa.NewReader(false, true), emss: 136, mulpdu: layout.MinMULPDU}
	p.post(work(1, OpWrite, all(r, 2000)))
	w.drained(p)
	if s := p.Machine.Stats(); s.AlignedWrites != 0 || s.Writes == 0 {
		t.Errorf("%d of %d writes are said to be aligned, with FPDUs larger than a segment", s.AlignedWrites, s.Writes)
	}
	p.Machine.SetMULPDU(layout.MULPDU(1448, false), 1448, 64<<10)
	w.emss, w.mulpdu = 1448, p.Machine.MULPDU
	before := p.Machine.Stats()
	p.post(work(2, OpWrite, all(r, 10000)))
	w.drained(p)
	if s := p.Machine.Stats(); s.AlignedWrites != s.Writes-before.Writes {
		t.Errorf("%d of %d writes are aligned", s.AlignedWrites, s.Writes-before.Writes)
	}

	// What is under way when the EMSS changes may be cut elsewhere.
	p.post(work(3, OpWrite, all(r, 10000)))
	n := len(p.Machine.Output(*p.now, p.g)[0])
	p.Machine.SetMULPDU(layout.MULPDU(1348, false), 1348, 64<<10)
	before = p.Machine.Stats()
	p.Machine.Sent(*p.now, p.g, n)
	if s := p.Machine.Stats(); s.AlignedWrites != before.AlignedWrites || s.Writes != before.Writes+1 {
		t.Errorf("%d aligned writes, %d before", s.AlignedWrites, before.AlignedWrites)
	}
}

// A Read Request, which is built whole, begins a segment of its own where the one under way
// has no room for it.
func TestHeaderAlignmentOfReadRequest(t *testing.T) {
	const emss, request = 1448, 2 + 18 + 28 + 4
	for _, c := range []struct {
		room  int // that a Write leaves
		sizes []int
	}{
		{request, []int{emss}},
		{request - 4, []int{emss - request + 4, request}},
		{24, []int{emss - 24, request}},
	} {
		p := initiator(t, aligned(emss, false))
		r := p.region(make([]byte, 4000), remoteAll)
		w := &wire{TB: t, rx: mpa.NewReader(false, true), emss: emss, mulpdu: p.Machine.MULPDU}
		p.post(work(1, OpWrite, all(r, emss-c.room-20)))
		p.post(work(2, OpRead, all(r, 10)))
		w.drained(p)
		if !slices.Equal(w.sizes, c.sizes) {
			t.Errorf("room for %d bytes: segments of %d, want %d", c.room, w.sizes, c.sizes)
		}
	}
}

// A Gather ends with the record that it has room for, if much of the message is left; where
// messages are short, and fill no segment to the last byte, with the first FPDU that exceeds
// what it holds.
func TestGatherEndsWithSegment(t *testing.T) {
	for _, c := range []struct {
		what         string
		emss         int
		sends, each  int
		want, record int
	}{
		{"45 segments of 1448 bytes", 1448, 1, 1 << 20, 45 * 1448, 45 * 1448},
		{"64 segments of 1024 bytes", 1024, 1, 1 << 20, 64 << 10, 64 << 10},
		{"FPDUs of 44 bytes, 32 in a segment", 1448, 2000, 20, 52*32*44 + 12*44, 32 * 44},
	} {
		p := initiator(t, aligned(c.emss, false), func(s *setup) { s.SendDepth = 2000 })
		r := p.region(make([]byte, c.each), remoteAll)
		for id := range uint64(c.sends) {
			p.post(work(id, OpSend, all(r, c.each)))
		}
		records := p.Machine.Output(p.clock, p.g)
		if n := len(slices.Concat(records...)); n != c.want || len(records[0]) != c.record {
			t.Errorf("%s: %d bytes, %d of them in the first record", c.what, n, len(records[0]))
		}
	}
}

// A message of 64 KiB and the short one after it, as a Write that is announced by a Send, leave
// in one Gather, wherever segments end. A Gather of a long message is one record.
func TestGatherTakesMessageWhole(t *testing.T) {
	for _, emss := range []int{0, 1396, 1448, 8948, 65483} {
		for _, marked := range []bool{false, true} {
			p := initiator(t, aligned(emss, marked))
			r := p.region(make([]byte, 1<<20), remoteAll)
			p.post(work(1, OpWrite, all(r, 64<<10)))
			p.post(work(2, OpSend, all(r, 64)))
			p.sendGather()
			if p.Machine.Pending() {
				t.Errorf("EMSS %d, markers %v: the Send is left", emss, marked)
			}
			p.post(work(3, OpWrite, all(r, 1<<20)))
			for {
				n := p.sendGather()
				if !p.Machine.Pending() {
					break
				}
				if n != 1 && emss <= 8948 && !marked { // else segments are left short, and so records
					t.Errorf("EMSS %d: a Gather of %d records", emss, n)
				}
			}
		}
	}
}

// sendGather sends what one Gather holds, and returns of how many records that was.
func (p *peer) sendGather() (records int) {
	v := p.Machine.Output(*p.now, p.g)
	n := 0
	for _, b := range v {
		n += len(b)
	}
	p.Machine.Sent(*p.now, p.g, n)
	return len(v)
}

// The LLP may take any part of a write: the rest comes with the same records.
func TestRecordsGoOn(t *testing.T) {
	p := initiator(t, aligned(1448, false))
	r := p.region(make([]byte, 1000), remoteAll)
	for id := range uint64(8) {
		p.post(work(id, OpSend, all(r, 1000-100)))
	}
	ends := map[int]bool{}
	v := p.Machine.Output(*p.now, p.g)
	total := 0
	for _, b := range v {
		total += len(b)
		ends[total] = true
	}
	for sent := 0; sent < total; {
		n := min(700, total-sent)
		p.Machine.Sent(*p.now, p.g, n)
		sent += n
		at := sent
		for _, b := range p.Machine.Output(*p.now, p.g) {
			if at += len(b); sent < total && !ends[at] {
				t.Fatalf("after %d bytes a record ends at %d; at first they ended at %v", sent, at, ends)
			}
		}
	}
}
