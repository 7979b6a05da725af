package sctpudp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// A stranger plays the other side of SCTP by hand.
type stranger struct {
	*testing.T
	pc   *net.UDPConn
	to   netip.AddrPort
	ours initFields
}

func meet(t *testing.T, e *Endpoint) *stranger {
	s := &stranger{T: t, pc: socket(t), to: e.at()}
	t.Cleanup(func() { _ = s.pc.Close() })
	s.ours = initFields{tag: random(), window: 64 << 10, out: 4, in: 4, tsn: 1000, adaptation: sctp.AdaptationDDP, hasAdaptation: true}
	return s
}

func (s *stranger) port() uint16 { return s.pc.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// says sends a packet of one chunk.
func (s *stranger) says(tag uint32, kind, flags byte, value []byte) {
	s.Helper()
	s.sends(seal(appendChunk(start(s.port(), s.to.Port(), tag), kind, flags, value)))
}

func (s *stranger) sends(b []byte) {
	s.Helper()
	_, err := s.pc.WriteToUDPAddrPort(b, s.to)
	testrig.Must(s.T, err)
}

// hears returns the next chunk of a kind; others are passed over.
func (s *stranger) hears(kind byte) (tag uint32, c chunk) {
	s.Helper()
	b := make([]byte, 1<<16)
	testrig.Must(s.T, s.pc.SetReadDeadline(time.Now().Add(patience)))
	for {
		n, _, err := s.pc.ReadFromUDPAddrPort(b)
		if err != nil {
			s.Fatalf("no chunk of type %d: %v", kind, err)
		}
		p, chunks := parse(b[:n])
		if p == nil || p.source() != s.to.Port() {
			s.Fatalf("a bad packet: % x", b[:n])
		}
		for _, c := range chunks {
			if c.kind() == kind {
				return p.tag(), append(chunk(nil), c...)
			}
		}
	}
}

// asks sends an INIT and returns what the INIT ACK says.
func (s *stranger) asks() initFields {
	s.Helper()
	s.says(0, chunkInit, 0, s.ours.value())
	tag, c := s.hears(chunkInitAck)
	theirs, ok := parseInit(c.value())
	if !ok || tag != s.ours.tag || !theirs.ddp() || theirs.in != theirs.out || theirs.tag == 0 {
		s.Fatalf("INIT ACK with tag %x: %+v", tag, theirs)
	}
	return theirs
}

// opens goes through the whole handshake.
func (s *stranger) opens(e *Endpoint) (theirs initFields, c *end) {
	s.Helper()
	theirs = s.asks()
	s.says(theirs.tag, chunkCookieEcho, 0, theirs.cookie)
	s.hears(chunkCookieAck)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	conn, err := e.Accept(ctx)
	testrig.Must(s.T, err)
	return theirs, run(conn)
}

// data returns the value of a DATA chunk.
func data(tsn uint32, stream uint16, ppid uint32, text string) []byte {
	b := binary.BigEndian.AppendUint32(nil, tsn)
	b = binary.BigEndian.AppendUint16(b, stream)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, ppid)
	return append(b, text...)
}

// TestIndication: an INIT without DDP's indication is answered by ABORT, and nobody hears of it.
//
// RFC 5043, sections 7.1 and 11.1.
func TestIndication(t *testing.T) {
	e := endpoint(t, true, Config{})
	for name, change := range map[string]func(f *initFields){
		"none":    func(f *initFields) { f.hasAdaptation = false },
		"other":   func(f *initFields) { f.adaptation = 2 },
		"swapped": func(f *initFields) { f.adaptation = 0x01000000 },
	} {
		s := meet(t, e)
		change(&s.ours)
		s.says(0, chunkInit, 0, s.ours.value())
		if tag, _ := s.hears(chunkAbort); tag != s.ours.tag {
			t.Errorf("%s: ABORT with tag %x", name, tag)
		}
	}
	if n, _, _ := e.count(); n > 0 || len(e.accepted) > 0 {
		t.Error("an association")
	}
}

// dialed is a stranger that a client of ours dials: it has heard an INIT. What comes of the
// Dial is sent to refused.
func dialed(t *testing.T) (s *stranger, c chunk, refused chan error) {
	t.Helper()
	client, server := endpoint(t, false, Config{}), socket(t)
	t.Cleanup(func() { _ = server.Close() })
	refused = make(chan error, 1)
	go func() {
		_, err := client.Dial(t.Context(), server.LocalAddr().(*net.UDPAddr).AddrPort())
		refused <- err
	}()
	s = &stranger{T: t, pc: server, to: client.at()}
	_, c = s.hears(chunkInit)
	return s, c, refused
}

// TestIndicationOfServer: neither is there an association with a server that does not indicate DDP.
func TestIndicationOfServer(t *testing.T) {
	s, c, refused := dialed(t)
	theirs, ok := parseInit(c.value())
	if !ok || !theirs.ddp() {
		t.Errorf("INIT says %+v", theirs)
	}
	ours := initFields{tag: 77, window: 64 << 10, out: 4, in: 4, tsn: 5, cookie: []byte("cookie")}
	s.says(theirs.tag, chunkInitAck, 0, ours.value())
	if tag, _ := s.hears(chunkAbort); tag != 77 {
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
	theirs, _ := parseInit(c.value())
	s.says(theirs.tag+1, chunkAbort, 0, nil) // not for this one
	s.says(theirs.tag, chunkAbort, 0, nil)
	if err := within(t, refused); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
}

// TestFlood: INITs leave nothing behind, however many there are, and keep nobody out.
func TestFlood(t *testing.T) {
	e := endpoint(t, true, Config{MaxAssociations: 2})
	s := meet(t, e)
	seen := map[uint32]bool{}
	for i := range 2000 {
		s.ours.tag = random()
		theirs := s.asks()
		if seen[theirs.tag] || seen[theirs.tsn] {
			t.Fatalf("tag %x again, after %d", theirs.tag, i)
		}
		seen[theirs.tag], seen[theirs.tsn] = true, true
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
	forged := append([]byte(nil), theirs.cookie...)
	forged[20]++
	s.says(theirs.tag, chunkCookieEcho, 0, forged)
	s.says(theirs.tag, chunkCookieEcho, 0, theirs.cookie[:40])
	s.says(theirs.tag, chunkCookieEcho, 0, nil)
	s.says(theirs.tag+1, chunkCookieEcho, 0, theirs.cookie)
	other.says(theirs.tag, chunkCookieEcho, 0, theirs.cookie)
	if other.asks(); len(e.accepted) != 0 { // all before it was read
		t.Fatal("an association")
	}
	for range 3 {
		s.says(theirs.tag, chunkCookieEcho, 0, theirs.cookie)
		s.hears(chunkCookieAck)
	}
	if n := len(e.accepted); n != 1 {
		t.Errorf("%d associations", n)
	}
	m := newMinter()
	now := time.Unix(1_000_000, 0)
	p := packet(start(1, 2, 3))
	cookie := m.mint(now, &s.ours, &theirs, e.at(), p)
	for age, want := range map[time.Duration]bool{0: true, cookieLife: true, cookieLife + time.Second: false, -time.Second: false} {
		ours, back, ok := m.redeem(now.Add(age), cookie, e.at(), p)
		if ok != want || ours.tag != s.ours.tag || back.tsn != theirs.tsn {
			t.Errorf("after %v: %t, %+v", age, ok, back)
		}
	}
}

// TestRoom: beyond the number of associations, and of those that nobody accepts, a COOKIE ECHO is not answered.
func TestRoom(t *testing.T) {
	e := endpoint(t, true, Config{MaxAssociations: 1})
	meet(t, e).opens(e)
	s := meet(t, e)
	theirs := s.asks()
	s.says(theirs.tag, chunkCookieEcho, 0, theirs.cookie)
	if s.asks(); len(e.accepted) != 0 {
		t.Error("one more association")
	}
	e = endpoint(t, true, Config{})
	for i := range maxBacklog + 3 {
		s := meet(t, e)
		theirs := s.asks()
		s.says(theirs.tag, chunkCookieEcho, 0, theirs.cookie)
		if i < maxBacklog {
			s.hears(chunkCookieAck)
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
	spoilt := control(s.port(), s.to.Port(), theirs.tag, chunkAbort, nil)
	spoilt[9]++
	bundled := appendChunk(appendChunk(start(s.port(), s.to.Port(), theirs.tag), chunkSack, 0, make([]byte, 12)), chunkInit, 0, s.ours.value())
	second := appendChunk(appendChunk(start(s.port(), s.to.Port(), 0), chunkInit, 0, s.ours.value()), chunkAbort, 0, nil)
	cut := control(s.port(), s.to.Port(), theirs.tag, chunkAbort, make([]byte, 8))
	binary.BigEndian.PutUint16(cut[14:], 200)
	for _, b := range [][]byte{
		spoilt, seal(bundled), seal(second), seal(cut),
		control(s.port(), s.to.Port(), theirs.tag+1, chunkAbort, nil),
		control(s.port(), s.to.Port(), 0, chunkAbort, nil),
		control(s.port()+1, s.to.Port(), theirs.tag, chunkAbort, nil),
		control(s.port(), s.to.Port()+1, theirs.tag, chunkAbort, nil),
		control(0, s.to.Port(), theirs.tag, chunkAbort, nil),
		seal(appendChunk(start(s.port(), s.to.Port(), theirs.tag), chunkAbort, flagT, nil)), // which is our tag
		seal(appendChunk(start(s.port(), s.to.Port(), theirs.tag), chunkShutdownComplete, flagT, nil)),
		spoilt[:11], nil, spoilt[:13],
	} {
		s.sends(b)
	}
	stranger.sends(control(stranger.port(), s.to.Port(), theirs.tag, chunkAbort, nil))
	s.says(theirs.tag, 130, 0, make([]byte, 12))  // RE-CONFIG
	s.says(theirs.tag, 192, 0, data(1, 0, 0, "")) // FORWARD TSN
	s.says(theirs.tag, 64, 3, make([]byte, 20))   // I-DATA
	s.says(theirs.tag, chunkData, 7, data(1000, 0, 16, "alive"))
	if m := within(t, c.messages); string(m.Data) != "alive" {
		t.Errorf("got %+v", m)
	}
	s.says(theirs.tag, chunkData, 3, data(1001, 1, 16, "ordered"))
	within(t, c.messages)
	s.sends(seal(appendChunk(start(s.port(), s.to.Port(), s.ours.tag), chunkAbort, flagT, nil))) // by the rules
	if err := within(t, c.lost); !errors.Is(err, ErrAborted) {
		t.Errorf("lost: %v", err)
	}
}

// TestStreams: what comes on streams that there are not, and without data, is not even looked at.
func TestStreams(t *testing.T) {
	e := endpoint(t, true, Config{Streams: 9})
	s := meet(t, e)
	theirs, c := s.opens(e)
	if c.Streams() != 4 || theirs.in != 9 {
		t.Errorf("%d streams, %d offered", c.Streams(), theirs.in)
	}
	for _, id := range []uint16{4, 9, 65535} {
		s.says(theirs.tag, chunkData, 7, data(1000, id, 16, "beyond"))
	}
	s.says(theirs.tag, chunkData, 7, data(1000, 0, 16, ""))
	s.says(theirs.tag, chunkData, 7, nil)
	s.says(theirs.tag, chunkData, 7, data(1000, 3, 16, "within"))
	if m := within(t, c.messages); string(m.Data) != "within" || m.Stream != 3 {
		t.Errorf("got %+v", m)
	}
}

// TestRestart: a peer that begins anew from the same address and port gets in at once, and the old association ends.
func TestRestart(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	_, old := s.opens(e)
	s.ours.tag, s.ours.tsn = random(), 2000
	theirs, fresh := s.opens(e)
	if err := within(t, old.lost); !errors.Is(err, ErrRestarted) {
		t.Errorf("the old one: %v", err)
	}
	s.says(theirs.tag, chunkData, 7, data(2000, 0, 16, "anew"))
	within(t, fresh.messages)
	if n, peers, _ := e.count(); n != 1 || peers != 1 {
		t.Errorf("%d associations", n)
	}
}

// TestFragments: a message in fragments ends the association, whichever comes first.
//
// RFC 5043, section 9.
func TestFragments(t *testing.T) {
	for name, flags := range map[string]byte{"begin": 6, "middle": 4, "end": 5} {
		e := endpoint(t, true, Config{})
		s := meet(t, e)
		theirs, c := s.opens(e)
		s.says(theirs.tag, chunkData, flags, data(1000, 3, 16, "a part"))
		tag, told := s.hears(chunkAbort)
		if text := aborted(told).Error(); tag != s.ours.tag || !strings.Contains(text, "fragments (RFC 5043, section 9)") {
			t.Errorf("%s: ABORT with tag %x: %s", name, tag, text)
		}
		var v *sctp.Violation
		if err := within(t, c.lost); !errors.Is(err, ErrViolated) || !errors.As(err, &v) || v.Rule != sctp.RuleFragmented || v.Stream != 3 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
