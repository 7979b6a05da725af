package ddp

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// A follower is a segment that comes after one of 5 bytes, and whether it is the sequel of that.
type follower struct {
	name    string
	change  func(*Header) // from the header of the sequel
	payload string
	want    bool
}

// ofAny are those of either model.
var ofAny = []follower{
	{"it follows", func(*Header) {}, "p", true},
	{"no payload", func(*Header) {}, "", false},
	{"the last", func(h *Header) { h.Last = true }, "p", false},
	{"another version", func(h *Header) { h.Version = 0 }, "p", false},
	{"reserved bits", func(h *Header) { h.Rsvd = 1 }, "p", false},
	{"the other model", func(h *Header) { h.Tagged = !h.Tagged }, "p", false},
}

// checkSequel has followers come after the first segment, and then the sequel, whose header is next.
func checkSequel(t *testing.T, first, next Header, at uint64, followers []follower) {
	t.Helper()
	for _, c := range followers {
		s, err := Parse(append(first.Append(nil), "12345"...))
		if err != nil {
			t.Fatal(err)
		}
		var q Sequel
		q.After(&s)
		h := next
		c.change(&h)
		p, got, ok := q.Take(append(h.Append(nil), c.payload...))
		if ok != c.want || ok && (got != at || string(p) != c.payload) {
			t.Errorf("%s: %q at %#x, %t", c.name, p, got, ok)
		}
		if q.RsvdULP() != first.RsvdULP || q.Tagged() && q.STag() != first.STag {
			t.Errorf("%s: STag %#x, RsvdULP %#x", c.name, q.STag(), q.RsvdULP())
		}
		// It comes once, and if it did not come it may still.
		if _, _, ok = q.Take(append(next.Append(nil), "p"...)); ok == c.want {
			t.Errorf("%s, and then what follows: %t", c.name, ok)
		}
	}
}

// A sequel is the segment whose header is that of the one before, but for the TO that follows.
func TestSequel(t *testing.T) {
	first := Header{Tagged: true, Version: 1, RsvdULP: 0x40, STag: 0x01020304, TO: 1<<64 - 30}
	next := first
	next.TO += 5
	checkSequel(t, first, next, next.TO, slices.Concat(ofAny, []follower{
		{"a gap", func(h *Header) { h.TO++ }, "p", false},
		{"an overlap", func(h *Header) { h.TO-- }, "p", false},
		{"another STag", func(h *Header) { h.STag++ }, "p", false},
		{"another message", func(h *Header) { h.RsvdULP = 0x42 }, "p", false},
	}))
}

// The sequel in an untagged message has the MO that follows, and is of the same message of the same queue.
func TestUntaggedSequel(t *testing.T) {
	first := Header{Version: 1, RsvdULP: 0x44, ULP: 0x01020304, QN: 0, MSN: 7, MO: 1000}
	next := first
	next.MO += 5
	checkSequel(t, first, next, uint64(next.MO), slices.Concat(ofAny, []follower{
		{"a gap", func(h *Header) { h.MO++ }, "p", false},
		{"an overlap", func(h *Header) { h.MO-- }, "p", false},
		{"another message", func(h *Header) { h.MSN++ }, "p", false},
		{"another queue", func(h *Header) { h.QN++ }, "p", false},
		{"another opcode", func(h *Header) { h.RsvdULP = 0x43 }, "p", false},
		{"another STag to invalidate", func(h *Header) { h.ULP++ }, "p", false},
	}))
}

// Past the highest MO there is no segment: 0 does not follow it.
func TestSequelWraps(t *testing.T) {
	h := Header{Version: 1, MSN: 1, MO: math.MaxUint32}
	var q Sequel
	q.After(&Segment{Header: h, Raw: h.Append(nil), Payload: []byte("a")})
	h.MO = 0
	if _, _, ok := q.Take(append(h.Append(nil), "p"...)); ok {
		t.Error("MO 0 follows 0xFFFFFFFF")
	}
}

// Each one's sequel begins where it ends.
func TestSequels(t *testing.T) {
	h := Header{Tagged: true, Version: 1, STag: 7, TO: 100}
	var q Sequel
	q.After(&Segment{Header: h, Raw: h.Append(nil), Payload: make([]byte, 5)})
	for i, n := range []int{5, 1, 30, 2} { // bytes of the one before
		h.TO += uint64(n)
		next := []int{1, 30, 2, 9}[i]
		if p, to, ok := q.Take(append(h.Append(nil), make([]byte, next)...)); !ok || to != h.TO || len(p) != next {
			t.Fatalf("number %d: %d bytes at %d, %t", i, len(p), to, ok)
		}
	}
}

// After these there is none.
func TestNoSequel(t *testing.T) {
	for name, h := range map[string]Header{
		"the last":   {Tagged: true, Last: true, STag: 1},
		"untagged":   {Last: true, QN: 0, MSN: 1},
		"no payload": {Tagged: true, STag: 1},
	} {
		payload := []byte("12345")
		if name == "no payload" {
			payload = nil
		}
		q := Sequel{at: 5}
		q.After(&Segment{Header: h, Raw: h.Append(nil), Payload: payload})
		h.TO, h.MO = h.TO+uint64(len(payload)), h.MO+uint32(len(payload))
		for _, last := range []bool{false, true} {
			h.Last = last
			if _, _, ok := q.Take(append(h.Append(nil), "p"...)); ok {
				t.Errorf("after %s one comes", name)
			}
		}
	}
	var none Sequel
	for n := range 40 {
		if _, _, ok := none.Take(make([]byte, n)); ok {
			t.Errorf("%d bytes are the sequel of nothing", n)
		}
	}
}

// FuzzSequel: whatever comes, a sequel is a segment that Parse finds, and follows.
func FuzzSequel(f *testing.F) {
	h := Header{Tagged: true, Version: 1, STag: 7, TO: 100}
	f.Add(append(h.Append(nil), "abc"...), append((&Header{Tagged: true, Version: 1, STag: 7, TO: 103}).Append(nil),
		"d"...))
	f.Add(append(h.Append(nil), "abc"...), []byte{0x80})
	u := Header{Version: 1, MSN: 3, MO: 100}
	f.Add(append(u.Append(nil), "abc"...), append((&Header{Version: 1, MSN: 3, MO: 103}).Append(nil), "d"...))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s, err := Parse(first)
		if err != nil {
			return
		}
		var q Sequel
		q.After(&s)
		p, at, ok := q.Take(second)
		next, err := Parse(second)
		want := s.Header
		n := uint64(len(s.Payload))
		if want.Tagged {
			want.TO += n
		} else {
			want.MO += uint32(n)
		}
		overflows := !s.Tagged && uint64(s.MO)+n > math.MaxUint32
		follows := err == nil && !s.Last && n > 0 && len(next.Payload) > 0 && next.Header == want && !overflows
		if ok != follows || ok && (at != next.TO|uint64(next.MO) || !bytes.Equal(p, next.Payload)) {
			t.Fatalf("%v, then %v: %t", s.Header, next.Header, ok)
		}
	})
}
