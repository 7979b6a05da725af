package sctpudp

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// TestForm: a packet has a chunk at least, ports, and nothing beside what stands alone.
//
// RFC 9260, section 6.10.
func TestForm(t *testing.T) {
	h := chunk.Header{Source: 1, Destination: 2, Tag: 3}
	sack := chunk.Chunk{Type: chunk.TypeSack}
	for _, kind := range []chunk.Type{chunk.TypeInit, chunk.TypeInitAck, chunk.TypeShutdownComplete,
		chunk.TypeCookieEcho, chunk.TypeAbort} {
		c := chunk.Chunk{Type: kind}
		p, ok := parse(h.Packet(c))
		if !ok || p.Header != h || p.has(kind) == nil || p.has(chunk.TypeSack) != nil {
			t.Errorf("type %d by itself: %+v, %t", kind, p, ok)
		}
		_, first := parse(h.Packet(c, sack))
		_, last := parse(h.Packet(sack, c))
		if want := kind == chunk.TypeCookieEcho || kind == chunk.TypeAbort; first != want || last != want {
			t.Errorf("type %d beside another: %t and %t", kind, first, last)
		}
	}
	for name, b := range map[string][]byte{
		"no chunk": h.Packet(), "no source": chunk.Header{Destination: 2}.Packet(sack),
		"no destination": chunk.Header{Source: 1}.Packet(sack),
		"a cut chunk":    chunk.Seal(append(h.Packet(sack), 0, 0, 0, 9)),
	} {
		if p, ok := parse(b); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestSetups: an INIT has a tag, streams in both directions, and a window of 1500 bytes.
//
// RFC 9260, section 3.3.2.
func TestSetups(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *chunk.Setup)
		want   bool
	}{
		"the least":      {func(*chunk.Setup) {}, true},
		"no tag":         {func(s *chunk.Setup) { s.Tag = 0 }, false},
		"no streams out": {func(s *chunk.Setup) { s.Out = 0 }, false},
		"no streams in":  {func(s *chunk.Setup) { s.In = 0 }, false},
		"too little":     {func(s *chunk.Setup) { s.Window = 1499 }, false},
	} {
		s := chunk.Setup{Tag: 1, Window: 1500, Out: 1, In: 1}
		c.change(&s)
		if got, ok := parseSetup(s.Append(nil)); ok != c.want || got.Tag != s.Tag {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	s := chunk.Setup{Tag: 1, Window: 1500, Out: 1, In: 1, Cookie: []byte("cookie")}
	if _, ok := parseSetup(s.Append(nil)[:chunk.SetupLen+5]); ok {
		t.Error("a parameter that is not whole")
	}
}
