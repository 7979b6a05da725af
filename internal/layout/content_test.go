package layout_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
)

// stream puts content on a stream at an offset, byte by byte, with markers of 0xff.
func stream(content []byte, offset uint64, markers bool) (b []byte) {
	for _, c := range content {
		if markers && (offset+uint64(len(b)))%layout.MarkerInterval == 0 {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
		}
		b = append(b, c)
	}
	return b
}

// Whatever part of an FPDU is taken at whatever offset, what is copied, cut and squeezed is
// its bytes and no marker, and only Squeeze changes the stream.
//
// Proves F07, F12.
func TestContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, rapid.IntRange(0, 300).Draw(t, "bytes by 7"))
		offset := rapid.Uint64Range(0, 2000).Draw(t, "offset")
		markers := rapid.Bool().Draw(t, "markers")
		b := stream(want, offset, markers)
		before := bytes.Clone(b)
		c := layout.ContentAt(append(b, "what follows"...), len(want), offset, markers)
		if c.Len() != len(want) || c.Whole() != (len(b) == len(want)) {
			t.Fatalf("%d bytes, whole: %v", c.Len(), c.Whole())
		}
		n := rapid.IntRange(0, len(want)).Draw(t, "cut")
		front, rest := c.Cut(n)
		first, second := make([]byte, n+1), make([]byte, len(want)-n)
		front.CopyTo(first)
		rest.CopyTo(second)
		if front.Len() != n || rest.Len() != len(second) || first[n] != 0 {
			t.Fatalf("cut into %d and %d", front.Len(), rest.Len())
		}
		if got := append(first[:n], second...); !bytes.Equal(got, want) {
			t.Fatalf("cut at %d: % x", n, got)
		}
		some := make([]byte, n)
		c.CopyTo(some)
		if !bytes.Equal(some, want[:n]) || !bytes.Equal(b, before) {
			t.Fatalf("the first %d: % x", n, some)
		}
		rest.Squeeze()
		if got := front.Squeeze(); !bytes.Equal(got, want[:n]) {
			t.Fatalf("squeezed: % x", got)
		}
	})
}

func TestContentSqueeze(t *testing.T) {
	for offset := range uint64(2 * layout.MarkerInterval) {
		want := bytes.Repeat([]byte("abcdefg"), 200)
		b := stream(want, offset, true)
		if got := layout.ContentAt(b, len(want), offset, true).Squeeze(); !bytes.Equal(got, want) {
			t.Fatalf("at %d: % x", offset, got)
		}
	}
	b := []byte("plain")
	if got := layout.Plain(b).Squeeze(); &got[0] != &b[0] || len(got) != 5 || cap(got) != 5 {
		t.Errorf("%q", got)
	}
}
