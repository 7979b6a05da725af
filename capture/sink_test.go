package capture_test

import (
	"bytes"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
)

// A book is a sink which writes down what it is told, and checks that it is told
// so in the order that Sink promises.
type book struct {
	rapid.TB
	lines    []string
	segments bool // write down segments too
	known    map[*capture.Connection]*entry
	skipped  []capture.Skip
}

// An entry is a connection in a book, with the bytes of both directions. Those in
// gaps are zeros.
type entry struct {
	c       *capture.Connection
	streams [2][]byte
	from    [2][]uint64 // packet that each byte was in, 0 in a gap
	gaps    [2][]capture.Gap
	fresh   [2]uint64 // captured bytes of segments that were new as a whole
	ends    [2]*capture.End
	over    bool
}

func newBook(tb rapid.TB) *book {
	return &book{TB: tb, known: map[*capture.Connection]*entry{}}
}

func (b *book) write(format string, args ...any) {
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

// text is everything that was written down.
func (b *book) text() string { return strings.Join(b.lines, "\n") }

// entry returns a connection that was opened and not forgotten.
func (b *book) entry(c *capture.Connection) *entry {
	e := b.known[c]
	if e == nil || e.over {
		b.Fatalf("connection %d is not open", c.Number)
	}
	if c.State != e {
		b.Fatalf("connection %d has lost its state", c.Number)
	}
	return e
}

func (b *book) Opened(c *capture.Connection) {
	if b.known[c] != nil {
		b.Fatalf("connection %d opened twice", c.Number)
	}
	e := &entry{c: c}
	c.State, b.known[c] = e, e
	b.write("%d open %v", c.Number, c)
}

func (b *book) Segment(c *capture.Connection, s *capture.Segment) {
	e := b.entry(c)
	if s.Repeated == 0 && s.Length > 0 && e.ends[s.Dir] == nil {
		e.fresh[s.Dir] += uint64(len(s.Data))
	}
	if len(s.Data) > s.Length || s.Repeated > s.Length || s.Length < 0 {
		b.Fatalf("impossible segment %+v", s)
	}
	if !b.segments {
		return
	}
	line := fmt.Sprintf("%d #%d %v %v %d+%d %v", c.Number, s.Packet.Number, s.Dir, s.Flags, s.Offset, s.Length, s.Order)
	if s.Repeated > 0 {
		line += fmt.Sprintf(" repeated %d %v of #%d", s.Repeated, s.Match, s.First)
	}
	if s.Early > 0 {
		line += fmt.Sprintf(" early %d", s.Early)
	}
	if s.KeepAlive {
		line += " keep-alive"
	}
	b.write("%s", line)
}

func (b *book) Data(c *capture.Connection, d capture.Data) {
	e := b.running(c, d.Dir, d.Offset)
	if len(d.Bytes) == 0 {
		b.Fatalf("connection %d %v: no bytes at %d", c.Number, d.Dir, d.Offset)
	}
	if d.Segment.Offset > d.Offset || d.Segment.Offset+uint64(d.Segment.Length) < d.Offset+uint64(len(d.Bytes)) {
		b.Fatalf("bytes %d+%d are not in segment %+v", d.Offset, len(d.Bytes), d.Segment)
	}
	e.streams[d.Dir] = append(e.streams[d.Dir], d.Bytes...)
	for range d.Bytes {
		e.from[d.Dir] = append(e.from[d.Dir], d.Packet.Number)
	}
	b.write("%d #%d %v data %d %q", c.Number, d.Packet.Number, d.Dir, d.Offset, d.Bytes)
}

func (b *book) Gap(c *capture.Connection, g capture.Gap) {
	e := b.running(c, g.Dir, g.Offset)
	if g.Length == 0 {
		b.Fatalf("connection %d %v: an empty gap at %d", c.Number, g.Dir, g.Offset)
	}
	e.gaps[g.Dir] = append(e.gaps[g.Dir], g)
	if n := int(g.Length); n < 1<<20 { // more is not worth the memory
		e.streams[g.Dir] = append(e.streams[g.Dir], make([]byte, n)...)
		e.from[g.Dir] = append(e.from[g.Dir], make([]uint64, n)...)
	}
	b.write("%d #%d %v gap %d+%d %v", c.Number, g.Packet.Number, g.Dir, g.Offset, g.Length, g.Cause)
}

// running returns a connection whose direction d goes on at an offset.
func (b *book) running(c *capture.Connection, d capture.Dir, offset uint64) *entry {
	e := b.entry(c)
	if e.ends[d] != nil {
		b.Fatalf("connection %d %v goes on at %d and has ended", c.Number, d, offset)
	}
	if want := e.next(d); offset != want {
		b.Fatalf("connection %d %v goes on at %d, want %d", c.Number, d, offset, want)
	}
	return e
}

// next is where a direction must go on.
func (e *entry) next(d capture.Dir) uint64 {
	n := uint64(len(e.streams[d]))
	for _, g := range e.gaps[d] {
		if g.Length >= 1<<20 {
			n += g.Length
		}
	}
	return n
}

func (b *book) Ended(c *capture.Connection, end capture.End) {
	e := b.running(c, end.Dir, end.Offset)
	e.ends[end.Dir] = &end
	peer := ""
	if end.Peer {
		peer = " of the peer"
	}
	b.write("%d #%d %v end %d %v%s", c.Number, end.Packet.Number, end.Dir, end.Offset, end.Reason, peer)
}

func (b *book) Forgotten(c *capture.Connection) {
	e := b.entry(c)
	if e.ends[0] == nil || e.ends[1] == nil {
		b.Fatalf("connection %d forgotten before its end", c.Number)
	}
	e.over = true
	b.write("%d forgotten", c.Number)
}

func (b *book) Skipped(p *capture.Packet, why capture.Skip) {
	b.skipped = append(b.skipped, why)
	b.write("#%d skipped: %v", p.Number, why)
}

// only returns the one connection of a capture that was tracked to its end.
func (b *book) only() *entry {
	b.Helper()
	if len(b.known) != 1 {
		b.Fatalf("%d connections, want 1", len(b.known))
	}
	for _, e := range b.known {
		if !e.over {
			b.Fatal("the connection was not forgotten at the end")
		}
		return e
	}
	return nil
}

// wantStream checks the bytes of a direction.
func (e *entry) wantStream(tb rapid.TB, d capture.Dir, want []byte) {
	tb.Helper()
	if !bytes.Equal(e.streams[d], want) {
		tb.Errorf("%v: %d bytes %.60q, want %d bytes %.60q", d, len(e.streams[d]), e.streams[d], len(want), want)
	}
}
