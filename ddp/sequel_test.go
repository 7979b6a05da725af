package ddp

import (
	"bytes"
	"testing"
)

// A sequel is the segment whose header is that of the one before, but for the TO that follows.
func TestSequel(t *testing.T) {
	first := Header{Tagged: true, Version: 1, RsvdULP: 0x40, STag: 0x01020304, TO: 1<<64 - 30}
	parsed := func(h Header, payload string) *Segment {
		s, err := Parse(append(h.Append(nil), payload...))
		if err != nil {
			t.Fatal(err)
		}
		return &s
	}
	next := first
	next.TO += 5
	with := func(change func(h *Header)) Header {
		h := next
		change(&h)
		return h
	}
	for _, c := range []struct {
		name    string
		h       Header
		payload string
		want    bool
	}{
		{"it follows", next, "p", true},
		{"no payload", next, "", false},
		{"the last", with(func(h *Header) { h.Last = true }), "p", false},
		{"a gap", with(func(h *Header) { h.TO++ }), "p", false},
		{"an overlap", with(func(h *Header) { h.TO-- }), "p", false},
		{"another STag", with(func(h *Header) { h.STag++ }), "p", false},
		{"another message", with(func(h *Header) { h.RsvdULP = 0x42 }), "p", false},
		{"another version", with(func(h *Header) { h.Version = 0 }), "p", false},
		{"reserved bits", with(func(h *Header) { h.Rsvd = 1 }), "p", false},
		{"untagged", with(func(h *Header) { h.Tagged = false }), "p", false},
	} {
		var q Sequel
		q.After(parsed(first, "12345"))
		b := append(c.h.Append(nil), c.payload...)
		p, to, ok := q.Take(b)
		if ok != c.want || ok && (to != next.TO || string(p) != c.payload) {
			t.Errorf("%s: %q at %#x, %t", c.name, p, to, ok)
		}
		if q.STag() != first.STag || q.RsvdULP() != first.RsvdULP {
			t.Errorf("%s: STag %#x, RsvdULP %#x", c.name, q.STag(), q.RsvdULP())
		}
		// It comes once, and if it did not come it may still.
		if _, _, ok = q.Take(append(next.Append(nil), "p"...)); ok == c.want {
			t.Errorf("%s, and then what follows: %t", c.name, ok)
		}
	}
}

// Each one's sequel begins where it ends.
func TestSequels(t *testing.T) {
	h := Header{Tagged: true, Version: 1, STag: 7, TO: 100}
	var q Sequel
	q.After(&Segment{Header: h, Raw: h.Append(nil), Payload: make([]byte, 5)})
	for i, n := range []int{5, 1, 30, 2} { // octets of the one before
		h.TO += uint64(n)
		next := []int{1, 30, 2, 9}[i]
		if p, to, ok := q.Take(append(h.Append(nil), make([]byte, next)...)); !ok || to != h.TO || len(p) != next {
			t.Fatalf("number %d: %d octets at %d, %t", i, len(p), to, ok)
		}
	}
}

// After these there is none.
func TestNoSequel(t *testing.T) {
	for name, h := range map[string]Header{
		"the last":   {Tagged: true, Last: true, STag: 1},
		"untagged":   {QN: 0, MSN: 1},
		"no payload": {Tagged: true, STag: 1},
	} {
		payload := []byte("12345")
		if name == "no payload" {
			payload = nil
		}
		q := Sequel{to: 5}
		q.After(&Segment{Header: h, Raw: h.Append(nil), Payload: payload})
		h.TO += uint64(len(payload))
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
			t.Errorf("%d octets are the sequel of nothing", n)
		}
	}
}

// FuzzSequel: whatever comes, a sequel is a segment that Parse finds, and follows.
func FuzzSequel(f *testing.F) {
	h := Header{Tagged: true, Version: 1, STag: 7, TO: 100}
	f.Add(append(h.Append(nil), "abc"...), append((&Header{Tagged: true, Version: 1, STag: 7, TO: 103}).Append(nil), "d"...))
	f.Add(append(h.Append(nil), "abc"...), []byte{0x80})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s, err := Parse(first)
		if err != nil {
			return
		}
		var q Sequel
		q.After(&s)
		p, to, ok := q.Take(second)
		next, err := Parse(second)
		want := s.Header
		want.TO += uint64(len(s.Payload))
		follows := err == nil && s.Tagged && !s.Last && len(s.Payload) > 0 && len(next.Payload) > 0 && next.Header == want
		if ok != follows || ok && (to != next.TO || !bytes.Equal(p, next.Payload)) {
			t.Fatalf("%v, then %v: %t", s.Header, next.Header, ok)
		}
	})
}
