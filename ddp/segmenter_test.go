package ddp

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// part is one segment as a Segmenter hands it out.
type part struct {
	Header
	N int
}

// segmenter begins with a message whose segments have such a header.
func segmenter(h Header, length uint32) (g Segmenter) {
	*g.Begin(length) = h
	return g
}

// cut hands out a whole message. Of the header that it has segments set, nothing is to be left.
func cut(h Header, length uint32, mulpdu int) (parts []part) {
	g, next := segmenter(h, length), stale
	for n, ok := g.Next(&next, mulpdu); ok; n, ok = g.Next(&next, mulpdu) {
		parts = append(parts, part{next, n})
		next = stale
	}
	return parts
}

// stale is a header that was used for something else.
var stale = Header{Tagged: true, Last: true, Rsvd: 3, Version: 2, RsvdULP: 0xff, STag: 0xbad, TO: 0xbad, ULP: 0xbad,
	QN: 0xbad, MSN: 0xbad, MO: 0xbad}

// Proves D18: 2048 bytes over a MULPDU of 1500 are the RFC's two untagged segments.
// Proves D19: and, from TO 16384 on, its two tagged ones.
// Proves D11: only the second has the L bit.
func TestSegmenterRFCExamples(t *testing.T) {
	untagged := Header{Version: 1, RsvdULP: 0x44, ULP: 7, QN: 3, MSN: 9}
	want := []part{
		{Header{Version: 1, RsvdULP: 0x44, ULP: 7, QN: 3, MSN: 9, MO: 0}, 1482},
		{Header{Version: 1, RsvdULP: 0x44, ULP: 7, QN: 3, MSN: 9, MO: 1482, Last: true}, 566},
	}
	if diff := cmp.Diff(want, cut(untagged, 2048, 1500)); diff != "" {
		t.Errorf("untagged (-want +got):\n%s", diff)
	}
	tagged := Header{Tagged: true, Version: 1, RsvdULP: 0x40, STag: 5, TO: 16384}
	want = []part{
		{Header{Tagged: true, Version: 1, RsvdULP: 0x40, STag: 5, TO: 16384}, 1486},
		{Header{Tagged: true, Version: 1, RsvdULP: 0x40, STag: 5, TO: 17870, Last: true}, 562},
	}
	if diff := cmp.Diff(want, cut(tagged, 2048, 1500)); diff != "" {
		t.Errorf("tagged (-want +got):\n%s", diff)
	}
}

// Proves D22: a zero-length message of either model is one segment with L=1.
func TestSegmenterZeroLength(t *testing.T) {
	for _, h := range []Header{{Tagged: true, STag: 1, TO: 77}, {QN: 0, MSN: 4}} {
		want := h
		want.Last = true
		if diff := cmp.Diff([]part{{want, 0}}, cut(h, 0, 128)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// The MULPDU shrinks and grows while a message is cut.
//
// Proves D01: segments cut after a change keep to the new value.
// Proves D02: those handed out before stay as they were; the next goes on after them.
func TestSegmenterMULPDUChanges(t *testing.T) {
	g, h := segmenter(Header{MSN: 1}, 3000), stale
	var got []part
	for _, mulpdu := range []int{1018, 518, 2018, 2018} {
		n, ok := g.Next(&h, mulpdu)
		if !ok {
			break
		}
		got = append(got, part{h, n})
	}
	want := []part{
		{Header{MSN: 1, MO: 0}, 1000},
		{Header{MSN: 1, MO: 1000}, 500},
		{Header{MSN: 1, MO: 1500, Last: true}, 1500},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A MULPDU without room for a byte makes no segment and loses none, and Peek does not take it for the last one.
func TestSegmenterNoRoom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tagged bool
		length uint32
		mulpdu int
		ok     bool
	}{
		{"untagged, header only", false, 10, 18, false},
		{"untagged, one byte", false, 10, 19, true},
		{"tagged, header only", true, 10, 14, false},
		{"tagged, one byte", true, 10, 15, true},
		{"untagged, nothing", false, 10, -1, false},
		{"zero-length, header", false, 0, 18, true},
		{"zero-length, less than the header", false, 0, 17, false},
	} {
		g, h := segmenter(Header{Tagged: tt.tagged}, tt.length), stale
		_, last := g.Peek(tt.mulpdu)
		if _, ok := g.Next(&h, tt.mulpdu); ok != tt.ok || !ok && h != stale || last != (ok && h.Last) {
			t.Errorf("%s: ok is %t, foretold as the last: %t", tt.name, ok, last)
		}
		if n, ok := g.Next(&h, 1000); !tt.ok && (!ok || uint32(n) != tt.length || !h.Last) {
			t.Errorf("%s: then %d bytes, %t", tt.name, n, ok)
		}
	}
}

// Proves D21: the longest message has 2^32-1 bytes, and its offsets do not wrap.
func TestSegmenterLongestMessage(t *testing.T) {
	parts := cut(Header{}, math.MaxUint32, 1<<30)
	last := parts[len(parts)-1]
	if got := uint64(last.MO) + uint64(last.N); got != math.MaxUint32 || !last.Last {
		t.Errorf("ends at %d, L %t", got, last.Last)
	}
}

// Any message over any MULPDUs.
//
// Proves D20: no segment is larger than the MULPDU, and together they hold the message once.
// Proves D11: L is on the last segment, which has the highest MO, and on no other.
// Proves D18, D19: MO and TO are the offset in the message, TO from the first TO on.
// Proves D14, D15, D16, D17: RsvdULP, STag, QN and MSN are the same in all segments.
// Proves D25: the segments of a message come in increasing MO or TO.
// Proves D13: DV is too.
func TestSegmenterAnyMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := headers().Draw(t, "header")
		length := rapid.Uint32Range(0, 5000).Draw(t, "length")
		g, h := segmenter(first, length), stale
		var sum uint32
		for last := false; !last; {
			mulpdu := rapid.IntRange(20, 700).Draw(t, "mulpdu")
			n, ok := g.Next(&h, mulpdu)
			if !ok || h.Len()+n > mulpdu || n == 0 && length > 0 {
				t.Fatalf("ok %t, %d bytes for a MULPDU of %d", ok, h.Len()+n, mulpdu)
			}
			sum += uint32(n)
			want := first
			want.Last = sum == length
			if want.Tagged {
				want.TO += uint64(sum) - uint64(n)
			} else {
				want.MO = sum - uint32(n)
			}
			if h != want {
				t.Fatalf("got %v, want %v", h, want)
			}
			last = h.Last
		}
		if _, ok := g.Next(&h, 700); ok || sum != length {
			t.Fatalf("%d of %d bytes, more %t", sum, length, ok)
		}
	})
}

// A Segmenter that has begun with a message, whether or not it has cut all of it, begins the next with a zero Header,
// from its beginning.
func TestSegmenterBeginsAgain(t *testing.T) {
	for _, mulpdu := range []int{30, 200} {
		g, h := segmenter(stale, 100), stale
		if _, ok := g.Next(&h, mulpdu); !ok {
			t.Fatal("no segment")
		}
		if first := g.Begin(3); *first != (Header{}) {
			t.Errorf("begins with %v", *first)
		}
		if n, ok := g.Next(&h, mulpdu); n != 3 || !ok || h != (Header{Last: true}) {
			t.Errorf("%d bytes, %t, with %v", n, ok, h)
		}
	}
}

// Peek tells of the segment what Next returns, and AppendMiddle writes the header of one that is not the last.
func TestSegmenterMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header{
			Tagged: rapid.Bool().Draw(t, "tagged"), Version: 1, RsvdULP: 0x43,
			STag: 5, TO: rapid.Uint64().Draw(t, "TO"), QN: 1, MSN: 4, ULP: 9,
		}
		s := segmenter(h, rapid.Uint32Range(0, 5000).Draw(t, "length"))
		for range 1000 {
			mulpdu := rapid.IntRange(-5, 600).Draw(t, "MULPDU")
			n, last := s.Peek(mulpdu)
			next := s
			want, ok := next.Next(&h, mulpdu)
			if ok && (n != want || last != h.Last) || !ok && last || !ok && n > 0 && mulpdu >= h.Len() {
				t.Fatalf("MULPDU %d: %d bytes and %t, then %d and %t, %t", mulpdu, n, last, want, h.Last, ok)
			}
			if ok && n > 0 && !last {
				if got := s.AppendMiddle([]byte("kept"),
					n); string(got) != string(h.Append([]byte("kept"))) || s != next {
					t.Fatalf("% x, then %d bytes are left; want % x, %d", got, s.Left(), h.Append(nil), next.Left())
				}
			}
			if s = next; last {
				return
			}
		}
	})
}
