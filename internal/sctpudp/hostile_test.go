package sctpudp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// A stranger plays the other side of SCTP by hand.
type stranger struct {
	*testing.T
	pc   *net.UDPConn
	to   netip.AddrPort
	ours chunk.Setup
	as   uint16 // port of SCTP, if it is not that of UDP
}

func meet(t *testing.T, e *Endpoint) *stranger {
	s := &stranger{T: t, pc: socket(t), to: e.at()}
	t.Cleanup(func() { _ = s.pc.Close() })
	s.ours = chunk.Setup{Tag: random(), Window: 64 << 10, Out: 4, In: 4, TSN: 1000,
		Adaptation: sctp.AdaptationDDP, HasAdaptation: true}
	return s
}

func (s *stranger) port() uint16 {
	return cmp.Or(s.as, s.pc.LocalAddr().(*net.UDPAddr).AddrPort().Port())
}

// says sends a packet of one chunk.
func (s *stranger) says(tag uint32, kind chunk.Type, flags byte, value []byte) {
	s.Helper()
	s.sends(s.packet(tag, chunk.Chunk{Type: kind, Flags: flags, Value: value}))
}

// packet returns one to the Endpoint.
func (s *stranger) packet(tag uint32, chunks ...chunk.Chunk) []byte {
	return chunk.Header{Source: s.port(), Destination: s.to.Port(), Tag: tag}.Packet(chunks...)
}

func (s *stranger) sends(b []byte) {
	s.Helper()
	_, err := s.pc.WriteToUDPAddrPort(b, s.to)
	testrig.Must(s.T, err)
}

// hears returns the next chunk of a kind; others are passed over.
func (s *stranger) hears(kind chunk.Type) (tag uint32, c chunk.Chunk) {
	s.Helper()
	b := make([]byte, 1<<16)
	testrig.Must(s.T, s.pc.SetReadDeadline(time.Now().Add(patience)))
	for {
		n, _, err := s.pc.ReadFromUDPAddrPort(b)
		if err != nil {
			s.Fatalf("no chunk of type %d: %v", kind, err)
		}
		p, ok := parse(b[:n])
		if !ok || p.Source != s.to.Port() {
			s.Fatalf("a bad packet: % x", b[:n])
		}
		if c := p.has(kind); c != nil {
			return p.Tag, chunk.Chunk{Type: c.Type, Flags: c.Flags, Value: bytes.Clone(c.Value), Length: c.Length}
		}
	}
}

// asks sends an INIT and returns what the INIT ACK says.
func (s *stranger) asks() chunk.Setup {
	s.Helper()
	s.says(0, chunk.TypeInit, 0, s.ours.Append(nil))
	tag, c := s.hears(chunk.TypeInitAck)
	theirs, ok := parseSetup(c.Value)
	if !ok || tag != s.ours.Tag || !isDDP(&theirs) || theirs.In != theirs.Out || theirs.Tag == 0 {
		s.Fatalf("INIT ACK with tag %x: %+v", tag, theirs)
	}
	return theirs
}

// opens goes through the whole handshake.
func (s *stranger) opens(e *Endpoint) (theirs chunk.Setup, c *end) {
	s.Helper()
	theirs = s.asks()
	s.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie)
	s.hears(chunk.TypeCookieAck)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	conn, err := e.Accept(ctx)
	testrig.Must(s.T, err)
	return theirs, run(conn)
}

// data returns the value of a DATA chunk.
func data(tsn uint32, stream uint16, ppid uint32, text string) []byte {
	d := chunk.Data{TSN: tsn, Stream: stream, PPID: ppid, Bytes: []byte(text)}
	return d.Chunk(0).Value
}

// TestIndication: an INIT without DDP's indication is answered by ABORT, and nobody hears of it.
//
// RFC 5043, sections 7.1 and 11.1.
//
// Proves C05.
func TestIndication(t *testing.T) {
	e := endpoint(t, true, Config{})
	for name, change := range map[string]func(f *chunk.Setup){
		"none":    func(f *chunk.Setup) { f.HasAdaptation = false },
		"other":   func(f *chunk.Setup) { f.Adaptation = 2 },
		"swapped": func(f *chunk.Setup) { f.Adaptation = 0x01000000 },
	} {
		s := meet(t, e)
		change(&s.ours)
		s.says(0, chunk.TypeInit, 0, s.ours.Append(nil))
		if tag, _ := s.hears(chunk.TypeAbort); tag != s.ours.Tag {
			t.Errorf("%s: ABORT with tag %x", name, tag)
		}
	}
	if n, _, _ := e.count(); n > 0 || len(e.accepted) > 0 {
		t.Error("an association")
	}
}

// dialed is a stranger that a client of ours dials: it has heard an INIT. What comes of the
// Dial is sent to refused.
func dialed(t *testing.T) (s *stranger, c chunk.Chunk, refused chan error) {
	t.Helper()
	client, server := endpoint(t, false, Config{}), socket(t)
	t.Cleanup(func() { _ = server.Close() })
	refused = make(chan error, 1)
	go func() {
		_, err := client.Dial(t.Context(), server.LocalAddr().(*net.UDPAddr).AddrPort())
		refused <- err
	}()
	s = &stranger{T: t, pc: server, to: client.at()}
	_, c = s.hears(chunk.TypeInit)
	return s, c, refused
}

// TestIndicationOfServer: neither is there an association with a server that does not indicate DDP.
//
// Proves C05.
func TestIndicationOfServer(t *testing.T) {
	s, c, refused := dialed(t)
	theirs, ok := parseSetup(c.Value)
	if !ok || !isDDP(&theirs) {
		t.Errorf("INIT says %+v", theirs)
	}
	ours := chunk.Setup{Tag: 77, Window: 64 << 10, Out: 4, In: 4, TSN: 5, Cookie: []byte("cookie")}
	s.says(theirs.Tag, chunk.TypeInitAck, 0, ours.Append(nil))
	if tag, _ := s.hears(chunk.TypeAbort); tag != 77 {
		t.Errorf("ABORT with tag %x", tag)
	}
	var v *sctp.Violation
	if err := within(t, refused); !errors.As(err, &v) || v.Rule != sctp.RuleIndication {
		t.Errorf("got %v", err)
	}
}

// TestRefused: an ABORT in answer to an INIT.
func TestRefused(t *testing.T) {
	s, c, refused := dialed(t)
	theirs, _ := parseSetup(c.Value)
	s.says(theirs.Tag+1, chunk.TypeAbort, 0, nil) // not for this one
	s.says(theirs.Tag, chunk.TypeAbort, 0, nil)
	if err := within(t, refused); !errors.Is(err, lowerlayer.ErrRefused) {
		t.Errorf("got %v", err)
	}
}

// TestFlood: INITs leave nothing behind, however many there are, and keep nobody out.
func TestFlood(t *testing.T) {
	e := endpoint(t, true, Config{MaxAssociations: 2})
	s := meet(t, e)
	seen := map[uint32]bool{}
	const inits = 2000
	for range inits {
		s.ours.Tag = random()
		theirs := s.asks()
		seen[theirs.Tag], seen[theirs.TSN] = true, true
	}
	if n := 2*inits - len(seen); n > 1 { // two of so many random numbers are the same in one of 500 runs
		t.Errorf("%d tags or TSNs were there again", n)
	}
	if n, _, _ := e.count(); n != 0 || len(e.accepted) != 0 {
		t.Errorf("%d associations", n)
	}
	dial(t, endpoint(t, false, Config{}), e)
}

// TestCookies: only a cookie of ours, for this address, with its tag, begins an association; again, it is the same one.
func TestCookies(t *testing.T) {
	e := endpoint(t, true, Config{})
	s, other := meet(t, e), meet(t, e)
	theirs := s.asks()
	forged := append([]byte(nil), theirs.Cookie...)
	forged[20]++
	s.says(theirs.Tag, chunk.TypeCookieEcho, 0, forged)
	s.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie[:40])
	s.says(theirs.Tag, chunk.TypeCookieEcho, 0, nil)
	s.says(theirs.Tag+1, chunk.TypeCookieEcho, 0, theirs.Cookie)
	other.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie)
	if other.asks(); len(e.accepted) != 0 { // all before it was read
		t.Fatal("an association")
	}
	for range 3 {
		s.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie)
		s.hears(chunk.TypeCookieAck)
	}
	if n := len(e.accepted); n != 1 {
		t.Errorf("%d associations", n)
	}
	m := newMinter()
	h := chunk.Header{Source: 1, Destination: 2}
	want := token{minted: 7, ours: chunk.Setup{Tag: 1, Window: 2, Out: 3, In: 4, TSN: 5},
		theirs: chunk.Setup{Tag: 6}, ties: ties{8, 9}}
	cookie, at := m.mint(&want, e.at(), h), e.at()
	if got, ok := m.redeem(cookie, at, h); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%t, %+v, want %+v", ok, got, want)
	}
	for _, from := range []struct {
		netip.AddrPort
		chunk.Header
	}{
		{netip.AddrPortFrom(at.Addr().Next(), at.Port()), h}, {netip.AddrPortFrom(at.Addr(), at.Port()+1), h},
		{at, chunk.Header{Source: 2, Destination: 2}}, {at, chunk.Header{Source: 1, Destination: 1}},
	} {
		if _, ok := m.redeem(cookie, from.AddrPort, from.Header); ok {
			t.Errorf("redeemed from %+v", from)
		}
	}
}

// TestRoom: beyond the number of associations, and of those that nobody accepts, a COOKIE ECHO is not answered.
func TestRoom(t *testing.T) {
	e := endpoint(t, true, Config{MaxAssociations: 1})
	meet(t, e).opens(e)
	s := meet(t, e)
	theirs := s.asks()
	s.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie)
	if s.asks(); len(e.accepted) != 0 {
		t.Error("one more association")
	}
	e = endpoint(t, true, Config{})
	for i := range maxBacklog + 3 {
		s := meet(t, e)
		theirs := s.asks()
		s.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie)
		if i < maxBacklog {
			s.hears(chunk.TypeCookieAck)
		}
	}
	meet(t, e).asks()
	if n := len(e.accepted); n != maxBacklog {
		t.Errorf("%d associations", n)
	}
}

// TestSpoofed: what does not have the right tag, checksum, form or address does nothing to an association.
func TestSpoofed(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	stranger := meet(t, e)
	abort, initial := chunk.Chunk{Type: chunk.TypeAbort}, chunk.Chunk{Type: chunk.TypeInit, Value: s.ours.Append(nil)}
	spoilt := s.packet(theirs.Tag, abort)
	spoilt[9]++
	cut := s.packet(theirs.Tag, chunk.Chunk{Type: chunk.TypeAbort, Value: make([]byte, 8)})
	binary.BigEndian.PutUint16(cut[14:], 200)
	for _, b := range [][]byte{
		spoilt, chunk.Seal(cut),
		s.packet(theirs.Tag, chunk.Chunk{Type: chunk.TypeSack, Value: make([]byte, 12)}, initial),
		s.packet(0, initial, abort),
		s.packet(theirs.Tag+1, abort),
		s.packet(0, abort),
		chunk.Header{Source: s.port() + 1, Destination: s.to.Port(), Tag: theirs.Tag}.Packet(abort),
		chunk.Header{Source: s.port(), Destination: s.to.Port() + 1, Tag: theirs.Tag}.Packet(abort),
		chunk.Header{Source: 0, Destination: s.to.Port(), Tag: theirs.Tag}.Packet(abort),
		s.packet(theirs.Tag, chunk.Chunk{Type: chunk.TypeAbort, Flags: chunk.FlagT}), // which is our tag
		s.packet(theirs.Tag, chunk.Chunk{Type: chunk.TypeShutdownComplete, Flags: chunk.FlagT}),
		spoilt[:11], nil, spoilt[:13],
	} {
		s.sends(b)
	}
	stranger.says(theirs.Tag, chunk.TypeAbort, 0, nil)
	s.says(theirs.Tag, 130, 0, make([]byte, 12))  // RE-CONFIG
	s.says(theirs.Tag, 192, 0, data(1, 0, 0, "")) // FORWARD TSN
	s.says(theirs.Tag, 64, 3, make([]byte, 20))   // I-DATA
	s.says(theirs.Tag, chunk.TypeData, 7, data(1000, 0, 16, "alive"))
	if m := within(t, c.messages); string(m.Data) != "alive" {
		t.Errorf("got %+v", m)
	}
	s.says(theirs.Tag, chunk.TypeData, 3, data(1001, 1, 16, "ordered"))
	within(t, c.messages)
	s.says(s.ours.Tag, chunk.TypeAbort, chunk.FlagT, nil) // by the rules
	if err := within(t, c.lost); !errors.Is(err, lowerlayer.ErrAborted) {
		t.Errorf("lost: %v", err)
	}
}

// TestStreams: what comes on streams that do not exist is acknowledged, answered with ERROR, and handed up without its
// data. Without data the association ends, and its peer is told why.
//
// RFC 9260, sections 6.2 and 6.5.
func TestStreams(t *testing.T) {
	e := endpoint(t, true, Config{Streams: 9})
	s := meet(t, e)
	theirs, c := s.opens(e)
	if c.Streams() != 4 || theirs.In != 9 {
		t.Errorf("%d streams, %d offered", c.Streams(), theirs.In)
	}
	for i, id := range []uint16{4, 9, 65535} {
		s.says(theirs.Tag, chunk.TypeData, 0x87, data(1000+uint32(i), id, 17, "beyond"))
		if _, why := s.hears(chunk.TypeError); !bytes.Equal(why.Value,
			[]byte{0, 1, 0, 8, byte(id >> 8), byte(id), 0, 0}) {
			t.Errorf("stream %d: told % x", id, why.Value)
		}
		if m := within(t, c.messages); m.Stream != id || m.PPID != 17 || len(m.Data) > 0 {
			t.Errorf("got %+v", m)
		}
	}
	s.says(theirs.Tag, chunk.TypeData, 7, nil)
	s.says(theirs.Tag, chunk.TypeData, 0x87, data(1003, 3, 16, "within"))
	if m := within(t, c.messages); string(m.Data) != "within" || m.Stream != 3 {
		t.Errorf("got %+v", m)
	}
	s.says(theirs.Tag, chunk.TypeData, 7, data(1004, 0, 16, ""))
	if _, why := s.hears(chunk.TypeAbort); !bytes.Equal(why.Value, []byte{0, 9, 0, 8, 0, 0, 3, 236}) {
		t.Errorf("told % x", why.Value)
	}
	if err := within(t, c.lost); !errors.Is(err, lowerlayer.ErrViolated) {
		t.Errorf("lost: %v", err)
	}
}

// TestLastStream: what comes on the last stream that there is is acknowledged, and is no error.
func TestLastStream(t *testing.T) {
	e := endpoint(t, true, Config{Streams: 9})
	s := meet(t, e)
	theirs, c := s.opens(e)
	s.says(theirs.Tag, chunk.TypeData, plain|flagImmediate, data(1000, 3, 16, "last"))
	if _, _, got := s.answer(); got.Type != chunk.TypeSack {
		t.Errorf("answered with type %d", got.Type)
	}
	if m := within(t, c.messages); string(m.Data) != "last" || m.Stream != 3 {
		t.Errorf("got %+v", m)
	}
}

// TestRestart: a peer that begins anew from the same address and port gets in at once, and the old association ends.
func TestRestart(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	_, old := s.opens(e)
	s.ours.Tag, s.ours.TSN = random(), 2000
	theirs, fresh := s.opens(e)
	if err := within(t, old.lost); !errors.Is(err, lowerlayer.ErrRestarted) {
		t.Errorf("the old one: %v", err)
	}
	s.says(theirs.Tag, chunk.TypeData, 7, data(2000, 0, 16, "anew"))
	within(t, fresh.messages)
	if n, peers, _ := e.count(); n != 1 || peers != 1 {
		t.Errorf("%d associations", n)
	}
}
