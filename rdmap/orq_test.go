package rdmap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
)

// response is a Read Response segment of n bytes.
func response(stag uint32, to uint64, n int, last bool) *ddp.Segment {
	h := OpReadResponse.Header(1)
	h.STag, h.TO, h.Last = stag, to, last
	return &ddp.Segment{Header: h, Raw: h.Append(nil), Payload: make([]byte, n)}
}

// Proves P28: a Read is done with its response's last segment, in the order of
// the requests, and STag, TO and length have to be those asked for.
func TestORQ(t *testing.T) {
	q := NewORQ(2)
	wantCode(t, "unasked", q.Check(response(1, 0, 10, true)), CodeUnexpectedOpcode)
	wantCode(t, "unasked, zero-length", q.Check(response(0, 0, 0, true)), CodeUnexpectedOpcode)
	q.Push(Read{SinkSTag: 7, SinkTO: 1000, Size: 100, ID: 1})
	q.Push(Read{SinkSTag: 8, SinkTO: 0, Size: 50, ID: 2})

	wantCode(t, "another STag", q.Check(response(8, 1000, 60, false)), CodeDDPInvalidSTag)
	wantCode(t, "from before it", q.Check(response(7, 999, 60, false)), CodeDDPBaseOrBounds)
	wantCode(t, "beyond its end", q.Check(response(7, 1041, 60, false)), CodeDDPBaseOrBounds)
	const beyond = "expected bytes 0x3e8 to 0x44c, got 60 from 0x411 on"
	if err := q.Check(response(7, 1041, 60, false)); err == nil || err.Reason != beyond {
		t.Error(err)
	}
	wantCode(t, "too long", q.Check(response(7, 1000, 101, true)), CodeDDPBaseOrBounds)
	wantCode(t, "too long, not last", q.Check(response(7, 1000, 101, false)), CodeDDPBaseOrBounds)
	wantCode(t, "L too early", q.Check(response(7, 1000, 99, true)), CodeCatastrophicStream)
	advance(t, &q, response(7, 1000, 60, false), 1, false)
	wantCode(t, "the same again, as the last", q.Check(response(7, 1000, 40, true)), CodeCatastrophicStream)
	wantCode(t, "too long by what came", q.Check(response(7, 1060, 41, true)), CodeDDPBaseOrBounds)
	if r, got, ok := q.Front(); !ok || r.ID != 1 || got != 60 {
		t.Errorf("front %+v, %d bytes, %t", r, got, ok)
	}
	if err := q.Check(response(7, 1060, 10, true)); err == nil ||
		err.Reason != "L is true with 70 of 100 bytes received" {
		t.Error(err)
	}
	advance(t, &q, response(7, 1060, 40, true), 1, true)
	advance(t, &q, response(8, 0, 50, true), 2, true)
	wantCode(t, "one more", q.Check(response(8, 0, 50, true)), CodeUnexpectedOpcode)
}

// advance wants a segment taken for a Read.
func advance(t *testing.T, q *ORQ, s *ddp.Segment, id uint64, done bool) {
	t.Helper()
	if err := q.Check(s); err != nil {
		t.Fatal(err)
	}
	if r, d := q.Advance(s); r.ID != id || d != done {
		t.Fatalf("%v: Read %d done %t, want %d, %t", s.Header, r.ID, d, id, done)
	}
}

// Proves P28: a zero-length Read too is done with its response and not before.
// Proves D23: whose STag and TO are not checked.
func TestORQZeroLength(t *testing.T) {
	q := NewORQ(2)
	q.Push(Read{SinkSTag: 1, SinkTO: 5, Size: 0, ID: 1})
	q.Push(Read{SinkSTag: 7, SinkTO: 0, Size: 10, ID: 2})
	wantCode(t, "with a byte", q.Check(response(1, 5, 1, true)), CodeDDPBaseOrBounds)
	wantCode(t, "without L", q.Check(response(1, 5, 0, false)), CodeCatastrophicStream)
	advance(t, &q, response(99, 99, 0, true), 1, true)
	wantCode(t, "zero-length for ten bytes", q.Check(response(7, 0, 0, true)), CodeCatastrophicStream)
	advance(t, &q, response(99, 99, 0, false), 2, false) // an empty segment changes nothing
	advance(t, &q, response(7, 0, 10, true), 2, true)
}

// A sink may end where 64 bits do.
func TestORQTopOfTO(t *testing.T) {
	q := NewORQ(1)
	q.Push(Read{SinkSTag: 7, SinkTO: 1<<64 - 10, Size: 9, ID: 1})
	advance(t, &q, response(7, 1<<64-10, 5, false), 1, false)
	advance(t, &q, response(7, 1<<64-5, 4, true), 1, true)
}

// Proves P46: no more Reads than the ORD, and one more when one is done.
func TestORQLimit(t *testing.T) {
	q := NewORQ(2)
	if !q.Push(Read{ID: 1}) || q.Full() || !q.Push(Read{ID: 2}) || !q.Full() || q.Push(Read{ID: 3}) {
		t.Error("takes other than two")
	}
	advance(t, &q, response(0, 0, 0, true), 1, true)
	if r, ok := q.Pop(); !ok || r.ID != 2 || q.Full() {
		t.Error(r, ok)
	}
	if _, ok := q.Pop(); ok {
		t.Error("popped from an empty queue")
	}
	if _, _, ok := q.Front(); ok {
		t.Error("front of an empty queue")
	}
	none := NewORQ(0)
	if !none.Full() || none.Push(Read{}) {
		t.Error("an ORD of zero takes a Read")
	}
}

// Flushing in the middle of a response leaves nothing of it.
func TestORQPopMidway(t *testing.T) {
	q := NewORQ(2)
	q.Push(Read{SinkSTag: 7, Size: 10, ID: 1})
	q.Push(Read{SinkSTag: 8, Size: 10, ID: 2})
	advance(t, &q, response(7, 0, 5, false), 1, false)
	if r, ok := q.Pop(); !ok || r.ID != 1 {
		t.Fatal(r, ok)
	}
	wantCode(t, "the rest, with what came of the first", q.Check(response(8, 5, 5, true)), CodeCatastrophicStream)
	advance(t, &q, response(8, 0, 10, true), 2, true)
}

// Any Reads, answered in any cut, against a plain slice.
//
// Proves P28, P46: whatever the order of requests and responses.
func TestORQAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ord := rapid.IntRange(1, 9).Draw(t, "ORD")
		q := NewORQ(ord)
		var model []Read
		for id := range uint64(rapid.IntRange(1, 60).Draw(t, "steps")) {
			if rapid.Bool().Draw(t, "push") {
				r := Read{SinkSTag: 7, SinkTO: rapid.Uint64().Draw(t, "TO"),
					Size: rapid.Uint32Max(40).Draw(t, "size"), ID: id}
				if q.Push(r) != (len(model) < ord) {
					t.Fatalf("push with %d of %d", len(model), ord)
				}
				if len(model) < ord {
					model = append(model, r)
				}
				continue
			}
			if len(model) == 0 {
				continue
			}
			answer(t, &q, model[0], rapid.IntRange(15, 30).Draw(t, "mulpdu"))
			model = model[1:]
		}
		if q.Len() != len(model) {
			t.Fatalf("%d Reads, want %d", q.Len(), len(model))
		}
	})
}

// answer gives the whole response to a Read.
func answer(t *rapid.T, q *ORQ, r Read, mulpdu int) {
	var g ddp.Segmenter
	var h ddp.Header
	all := g.Begin(r.Size)
	OpReadResponse.SetHeader(all, 1)
	all.STag, all.TO = r.SinkSTag, r.SinkTO
	for n, ok := g.Next(&h, mulpdu); ok; n, ok = g.Next(&h, mulpdu) {
		s := &ddp.Segment{Header: h, Payload: make([]byte, n)}
		if err := q.Check(s); err != nil {
			t.Fatal(err)
		}
		if got, done := q.Advance(s); got != r || done != h.Last {
			t.Fatalf("%+v done %t, want %+v", got, done, r)
		}
	}
}

// What is left of the oldest Read is what its response has yet to bring.
func TestORQLeft(t *testing.T) {
	q := NewORQ(3)
	left := func(want uint32) {
		t.Helper()
		if got := q.Left(); got != want {
			t.Errorf("%d bytes are left, want %d", got, want)
		}
	}
	left(0)
	q.Push(Read{Size: 100})
	q.Push(Read{Response: OpAtomicResponse, Size: 8})
	left(100)
	q.Came(30)
	left(70)
	if _, got, _ := q.Front(); got != 30 {
		t.Errorf("%d bytes have come", got)
	}
	q.Pop()
	left(0)
}

// A response may come in any order of TO, its segments may overlap, and the last one may be empty: the Read
// is done with the L bit and not before, and only if every byte has come. Each counts once.
//
// Proves P28, D24, D27: also where as many bytes as were asked for come, and not all of them.
func TestORQAnyOrderOfTO(t *testing.T) {
	type part struct{ from, to int }
	for name, parts := range map[string][]part{
		"reversed":               {{80, 100}, {30, 80}, {0, 30}},
		"the last in the middle": {{0, 30}, {80, 100}, {30, 80}},
		"empty at the end":       {{0, 100}, {0, 0}},
		"overlapping":            {{0, 60}, {40, 100}},
		"all of it again":        {{0, 100}, {0, 100}},
		"again and again":        {{0, 50}, {0, 50}, {0, 50}, {50, 100}},
		"around":                 {{20, 30}, {10, 50}, {0, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewORQ(1)
			q.Push(Read{SinkSTag: 7, SinkTO: 1000, Size: 100, ID: 1})
			for i, p := range parts {
				last := i == len(parts)-1
				s := response(7, uint64(1000+p.from), p.to-p.from, last)
				if p.to == 0 {
					s.STag, s.TO = 99, 99
				}
				advance(t, &q, s, 1, last)
			}
		})
	}
	for name, parts := range map[string][]part{
		"empty first":          {{0, 0}},
		"a gap, and as many":   {{0, 50}, {0, 50}},
		"the last one first":   {{80, 100}},
		"a byte missing":       {{0, 50}, {51, 100}, {0, 0}},
		"the first is missing": {{1, 100}, {1, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewORQ(1)
			q.Push(Read{SinkSTag: 7, SinkTO: 1000, Size: 100, ID: 1})
			for i, p := range parts {
				s := response(7, uint64(1000+p.from), p.to-p.from, i == len(parts)-1)
				if s.Last {
					wantCode(t, "not all has come", q.Check(s), CodeCatastrophicStream)
				} else {
					advance(t, &q, s, 1, false)
				}
			}
		})
	}
}

// What is remembered of the parts of a response is bounded, as of a Send's.
//
// Proves Z31.
func TestORQParts(t *testing.T) {
	q := NewORQ(1)
	q.Push(Read{SinkSTag: 7, Size: 1 << 20, ID: 1})
	for at := uint64(1); ; at += 2 {
		s := response(7, at, 1, false)
		if err := q.Check(s); err != nil {
			wantCode(t, "one part too many", err, CodeDDPLocalCatastrophic)
			if at < 1000 || at > 10000 {
				t.Errorf("refused at %d", at)
			}
			break
		}
		advance(t, &q, s, 1, false)
	}
	advance(t, &q, response(7, 0, 1<<20-1, false), 1, false)
	advance(t, &q, response(7, 1<<20-1, 1, true), 1, true)
}

// Any segments of a response against a map of the bytes.
//
// Proves P28, D24, D27, D40.
func TestORQCoverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 20
		to := rapid.SampledFrom([]uint64{0, 1000, 1<<64 - size}).Draw(t, "SinkTO")
		q := NewORQ(1)
		q.Push(Read{SinkSTag: 7, SinkTO: to, Size: size})
		var placed [size]bool
		for q.Len() > 0 {
			from, n := rapid.IntRange(-2, size+2).Draw(t, "from"), rapid.IntRange(0, size).Draw(t, "n")
			s := response(7, to+uint64(from), n, rapid.Bool().Draw(t, "L"))
			after := placed
			inside := n == 0 || from >= 0 && from+n <= size
			if inside && n > 0 {
				for i := range n {
					after[from+i] = true
				}
			}
			missing := slices.Contains(after[:], false)
			err := q.Check(s)
			switch {
			case (err == nil) != (inside && !(s.Last && missing)):
				t.Fatalf("%v with %d bytes: %v; %v", s.Header, n, err, placed)
			case err != nil:
				continue
			}
			placed = after
			if _, done := q.Advance(s); done != s.Last {
				t.Fatalf("done %t", done)
			}
		}
	})
}
