package sctpudp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestFragments: a message in fragments is put together, in whatever order they come, on several streams at once, and
// though they come twice.
//
// RFC 9260, section 6.9; RFC 5043, section 9, has its sender make some where the path's MTU has become smaller.
func TestFragments(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	var chunks []chunk.Chunk
	want := map[string]bool{}
	tsn := s.ours.TSN
	for i := range 20 {
		text := strings.Repeat(string(rune('a'+i)), 1+i*100)
		want[text] = true
		flags := byte(chunk.FlagBeginning)
		for rest := text; rest != ""; flags = 0 {
			part := rest[:min(500, len(rest))]
			if rest = rest[len(part):]; rest == "" {
				flags |= chunk.FlagEnding
			}
			d := chunk.Data{TSN: tsn, Stream: uint16(i % 4), PPID: 16, Bytes: []byte(part)}
			chunks = append(chunks, d.Chunk(flags|chunk.FlagUnordered))
			tsn++
		}
	}
	chunks = append(chunks, chunks...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(chunks), func(i, k int) { chunks[i], chunks[k] = chunks[k], chunks[i] })
	for _, p := range chunks {
		s.sends(s.packet(theirs.Tag, p))
	}
	for range 20 {
		m := within(t, c.messages)
		if text := string(m.Data); !want[text] || m.Ordered || m.PPID != 16 {
			t.Errorf("%d bytes with PPID %d, ordered %t", len(text), m.PPID, m.Ordered)
		}
		delete(want, string(m.Data))
	}
	if e.holding() != 0 {
		t.Errorf("%d bytes are held", e.holding())
	}
}

func (e *Endpoint) holding() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

// TestFragmentsAreBounded: those who never send the rest do not have us keep more than so much, and then lose their
// association.
func TestFragmentsAreBounded(t *testing.T) {
	e := endpoint(t, true, Config{Window: 64 << 10})
	s := meet(t, e)
	theirs, c := s.opens(e)
	part := bytes.Repeat([]byte("x"), 1000)
	most, told := 0, ""
	for i := uint32(0); i < 200 && told == ""; i++ {
		d := chunk.Data{TSN: s.ours.TSN + 2*i, Stream: 3, PPID: 16, Bytes: part}
		s.sends(s.packet(theirs.Tag, d.Chunk(chunk.FlagBeginning|chunk.FlagUnordered)))
		_, _, c := s.answer() // a SACK, or
		told = c.Reason()
		most = max(most, e.holding())
	}
	if !strings.Contains(told, "RFC 5043, section 9") {
		t.Errorf("ABORT: %q", told)
	}
	var v *sctp.Violation
	if err := within(t, c.lost); !errors.Is(err, lowerlayer.ErrViolated) || !errors.As(err, &v) ||
		v.Rule != sctp.RuleFragmented || v.Stream != 3 {
		t.Error(err)
	}
	if most < 64<<10 || most > 2*64<<10 || e.holding() != 0 {
		t.Errorf("%d bytes were held, and %d are", most, e.holding())
	}
}

// TestOdd: what has no U flag, or a PPID of any kind, comes as it was sent.
func TestOdd(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	const text = "longer than what an envelope has beside it"
	for i, m := range []sctp.Message{
		{PPID: 16, Ordered: true}, {PPID: 16}, {PPID: odd}, {PPID: odd, Ordered: true}, {PPID: odd | 16},
		{PPID: 1<<32 - 1}, {PPID: 17, Ordered: true},
	} {
		flags := byte(chunk.FlagsWhole | chunk.FlagUnordered)
		if m.Ordered {
			flags = chunk.FlagsWhole
		}
		d := chunk.Data{TSN: s.ours.TSN + uint32(i), Stream: 2, PPID: m.PPID, Bytes: []byte(text)}
		s.sends(s.packet(theirs.Tag, d.Chunk(flags)))
		if got := within(t, c.messages); got.PPID != m.PPID || got.Ordered != m.Ordered || got.Stream != 2 ||
			string(got.Data) != text {
			t.Errorf("got %+v, want %+v", got, m)
		}
	}
}

// TestLargePackets: a packet may be as large as UDP has them, if its chunks are not larger than what we take; one that
// is ends the association, and both ends hear why.
func TestLargePackets(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	var chunks []chunk.Chunk
	for i := range uint32(6) {
		d := chunk.Data{TSN: s.ours.TSN + i, Stream: 1, PPID: 16, Bytes: bytes.Repeat([]byte{byte(i)}, 8000)}
		chunks = append(chunks, d.Chunk(plain))
	}
	s.sends(s.packet(theirs.Tag, chunks...))
	for range 6 {
		if m := within(t, c.messages); len(m.Data) != 8000 {
			t.Errorf("%d bytes", len(m.Data))
		}
	}
	d := chunk.Data{TSN: s.ours.TSN + 6, Stream: 1, PPID: 16, Bytes: make([]byte, 9000)}
	s.sends(s.packet(theirs.Tag, d.Chunk(plain)))
	if err := within(t, c.lost); !errors.Is(err, lowerlayer.ErrTooLarge) {
		t.Error(err)
	}
	if _, told := s.hears(chunk.TypeAbort); !strings.Contains(told.Reason(), "9016 bytes") {
		t.Errorf("ABORT: %q", told.Reason())
	}
}

// TestMTU: no packet is larger than the path's MTU allows, with IP and UDP; and messages are as long as that allows.
func TestMTU(t *testing.T) {
	for mtu, want := range map[int]int{0: 1444, 1500: 1444, 1280: 1224, MinMTU: 536, 1: 536,
		MaxMTU: 8164, 1 << 20: 8164} {
		a, b := connect(t, Config{MTU: mtu})
		if a.MaxMessage() != want {
			t.Errorf("MTU %d: messages of %d bytes, want %d", mtu, a.MaxMessage(), want)
		}
		if err := a.Send(sctp.Message{PPID: 16, Data: make([]byte, want)}); err != nil {
			t.Error(err)
		}
		if m := within(t, b.messages); len(m.Data) != want {
			t.Errorf("MTU %d: %d bytes", mtu, len(m.Data))
		}
	}
}

// TestStreamFlood: who goes on with streams that do not exist, many in a packet, has all of it acknowledged, and gets
// ERRORs up to a bound; the association goes on.
func TestStreamFlood(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	const rounds = 20
	for range rounds {
		var all []chunk.Chunk
		for range 2 * strays {
			d := chunk.Data{TSN: s.ours.TSN, Stream: 9, PPID: 16, Bytes: []byte("x")}
			all = append(all, d.Chunk(plain))
			s.ours.TSN++
		}
		s.sends(s.packet(theirs.Tag, all...))
		for range all {
			within(t, c.messages)
		}
	}
	s.talks(&theirs, c, "still there")
	testrig.Must(t, c.Send(sctp.Message{Stream: 1, PPID: 16, Data: []byte("the last")}))
	told := 0
	for last := false; !last; {
		_, _, c := s.answer()
		if last = c.Type == chunk.TypeData; c.Type == chunk.TypeError {
			told++
		}
	}
	if told < strays || told >= 2*strays*rounds {
		t.Errorf("%d ERRORs", told)
	}
}

// inFragments returns the DATA chunks of a message on stream 1, in parts of 8000 bytes.
func (s *stranger) inFragments(text []byte, flags byte) (all []chunk.Chunk) {
	for flags |= chunk.FlagBeginning; len(text) > 0; flags &^= chunk.FlagBeginning {
		n := min(8000, len(text))
		if n == len(text) {
			flags |= chunk.FlagEnding
		}
		d := chunk.Data{TSN: s.ours.TSN, Stream: 1, PPID: 16, Bytes: text[:n]}
		all = append(all, d.Chunk(flags))
		text = text[n:]
		s.ours.TSN++
	}
	return all
}

// TestFragmentsOrdered: a message in fragments is ordered if it was sent so.
func TestFragmentsOrdered(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	for flags, want := range map[byte]bool{0: true, chunk.FlagUnordered: false} {
		s.sends(s.packet(theirs.Tag, s.inFragments(make([]byte, 8001), flags)...))
		if m := within(t, c.messages); m.Ordered != want || len(m.Data) != 8001 {
			t.Errorf("with flags %d %d bytes come ordered %t", flags, len(m.Data), m.Ordered)
		}
	}
}

// TestFragmentsTooLong: fragments make up a message of the longest kind, and for one byte more the association ends,
// and both ends hear why.
func TestFragmentsTooLong(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	for _, part := range s.inFragments(make([]byte, lowerlayer.MaxMessage), chunk.FlagUnordered) {
		s.sends(s.packet(theirs.Tag, part))
	}
	if m := within(t, c.messages); len(m.Data) != lowerlayer.MaxMessage {
		t.Errorf("%d bytes", len(m.Data))
	}
	for _, part := range s.inFragments(make([]byte, lowerlayer.MaxMessage+1), chunk.FlagUnordered) {
		s.sends(s.packet(theirs.Tag, part))
	}
	if _, told := s.hears(chunk.TypeAbort); !strings.Contains(told.Reason(), "67585 bytes in all") {
		t.Errorf("ABORT: %q", told.Reason())
	}
	var v *sctp.Violation
	if err := within(t, c.lost); !errors.As(err, &v) || v.Rule != sctp.RuleFragmented || v.Stream != 1 {
		t.Error(err)
	}
	if len(c.messages) > 0 || e.holding() != 0 {
		t.Errorf("%d more messages came, and %d bytes are held", len(c.messages), e.holding())
	}
}

// TestFragmentsNowhere: what comes on a stream that does not exist is handed up chunk by chunk, whatever part of a
// message it is.
func TestFragmentsNowhere(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	for flags := range byte(8) {
		s.says(theirs.Tag, chunk.TypeData, flags, data(s.ours.TSN, 9, 16, "nowhere"))
		s.ours.TSN++
		if m := within(t, c.messages); m.Stream != 9 || m.PPID != 16 || len(m.Data) > 0 {
			t.Errorf("flags %d: %+v", flags, m)
		}
	}
	if e.holding() != 0 {
		t.Errorf("%d bytes are held", e.holding())
	}
}

// TestHolds: an association holds two windows, to the byte, and all of them together hold so much. What one has held
// is free when it is given back, or when the association ends, and then once.
func TestHolds(t *testing.T) {
	e := endpoint(t, true, Config{Window: maxFragments})
	opens := func(port uint16) *path { return e.newPath(e.at(), port, e.setup(), e.setup()) }
	wantHeld := func(p *path, n int, want bool, all int) {
		t.Helper()
		if got := p.holds(n); got != want || e.holding() != all {
			t.Errorf("%d bytes more are held %t, and %d in all, want %d", n, got, e.holding(), all)
		}
	}
	a, b := opens(1), opens(2)
	wantHeld(a, maxFragments-1000, true, maxFragments-1000)
	wantHeld(b, 1001, false, maxFragments-1000)
	wantHeld(b, 1000, true, maxFragments)
	wantHeld(a, 1, false, maxFragments)
	wantHeld(a, -600, true, maxFragments-600)
	wantHeld(b, 600, true, maxFragments)
	_ = b.closeWith(nil)
	wantHeld(b, -600, false, maxFragments-1600)
	wantHeld(b, 1, false, maxFragments-1600)
	_ = a.closeWith(nil)

	e.cfg.Window = 64 << 10
	c := opens(3)
	wantHeld(c, 64<<10, true, 64<<10)
	wantHeld(c, 64<<10+1, false, 64<<10)
	wantHeld(c, 64<<10, true, 128<<10)
	wantHeld(c, 1, false, 128<<10)
	wantHeld(c, -128<<10, true, 0)
	wantHeld(c, 128<<10, true, 128<<10)
}
