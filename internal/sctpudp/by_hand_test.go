package sctpudp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// acks says a SACK up to a TSN.
func (s *stranger) acks(tag, tsn uint32) {
	s.Helper()
	sack := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, tsn), s.ours.Window)
	s.says(tag, chunk.TypeSack, 0, append(sack, 0, 0, 0, 0))
}

// TestSettled: a stream's messages have arrived when all of its own are acknowledged, and not before, whatever others
// have.
func TestSettled(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	for i, stream := range []uint16{1, 2, 1} {
		testrig.Must(t, c.Send(sctp.Message{Stream: stream, PPID: 16, Data: []byte("message")}))
		if _, d := s.hears(chunk.TypeData); len(d.Value) < 12 {
			t.Errorf("message %d: % x", i, d.Value)
		}
	}
	s.acks(theirs.Tag, theirs.TSN+1)
	if got := within(t, c.acks); got != [2]uint64{2, 1} {
		t.Errorf("the first that was told: %v", got)
	}
	s.acks(theirs.Tag, theirs.TSN+2)
	if got := within(t, c.acks); got != [2]uint64{1, 2} {
		t.Errorf("then %v", got)
	}
}

// TestHoldOnTheWire: a peer that is held back while something is missing is told that there is no room, and that there
// is some when it is not held back any more.
func TestHoldOnTheWire(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	window := func() uint32 {
		_, sack := s.hears(chunk.TypeSack)
		return binary.BigEndian.Uint32(sack.Value[4:])
	}
	s.says(theirs.Tag, chunk.TypeData, 7, data(s.ours.TSN+1, 1, 16, "ahead"))
	if n := window(); n == 0 {
		t.Error("there is no room at first")
	}
	c.Hold(true)
	s.says(theirs.Tag, chunk.TypeData, 7, data(s.ours.TSN+2, 1, 16, "more"))
	if n := window(); n != 0 {
		t.Errorf("held back, the peer is told of %d bytes", n)
	}
	c.Hold(false)
	if n := window(); n == 0 {
		t.Error("it is still held back")
	}
}

// TestShutdownOfBoth: where the peer has begun to shut the association down, so that it goes on until the peer has our
// last byte, a Shutdown of ours waits for that end, or for its context.
//
// RFC 9260, section 9.2, has the state SHUTDOWN-RECEIVED go on by itself, whatever its user asks for.
func TestShutdownOfBoth(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	s.says(theirs.Tag, chunk.TypeShutdown, 0, binary.BigEndian.AppendUint32(nil, theirs.TSN-1))
	s.hears(chunk.TypeShutdownAck)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	s.says(theirs.Tag, chunk.TypeShutdownComplete, 0, nil)
	testrig.Must(t, within(t, ended))
	if err := within(t, c.lost); !errors.Is(err, lowerlayer.ErrShutdown) {
		t.Errorf("lost: %v", err)
	}
}

// TestShutdownGivenUp: a SHUTDOWN that the peer does not take part in leaves the association as it is, for an ABORT to
// end.
func TestShutdownGivenUp(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Shutdown(ctx); err == nil {
		t.Error("it has ended")
	}
	s.talks(&theirs, c, "still there")
	c.Abort("enough")
	if _, why := s.hears(chunk.TypeAbort); why.Reason() != "enough" {
		t.Errorf("ABORT: %q", why.Reason())
	}
	if err := within(t, c.lost); !errors.Is(err, net.ErrClosed) {
		t.Errorf("lost: %v", err)
	}

	s = meet(t, e)
	theirs, c = s.opens(e)
	_ = c.Shutdown(ctx)
	s.says(theirs.Tag, chunk.TypeAbort, 0, nil) // which is not why it ends
	if err := within(t, c.lost); !errors.Is(err, net.ErrClosed) {
		t.Errorf("lost: %v", err)
	}
}

// TestOurTagFromOthers: what has an association's tag and does not come from its peer is not answered, since the tag is
// known.
func TestOurTagFromOthers(t *testing.T) {
	e := endpoint(t, true, Config{})
	s, other := meet(t, e), meet(t, e)
	theirs, _ := s.opens(e)
	other.says(theirs.Tag, chunk.TypeData, 7, data(1, 1, 16, "not mine"))
	other.says(815, chunk.TypeHeartbeat, 0, nil) // which is answered after it
	if _, tag, got := other.answer(); tag != 815 {
		t.Errorf("answered with type %d, tag %x", got.Type, tag)
	}
}

// TestShutdownAckInHandshake: who believes that its association is ending, and is dialed, is told that it has.
//
// RFC 9260, section 8.5.1, E.
func TestShutdownAckInHandshake(t *testing.T) {
	s, c, _ := dialed(t)
	theirs, _ := parseSetup(c.Value)
	s.says(theirs.Tag, chunk.TypeShutdownAck, 0, nil)
	if tag, done := s.hears(chunk.TypeShutdownComplete); tag != theirs.Tag || done.Flags != chunk.FlagT {
		t.Errorf("SHUTDOWN COMPLETE with tag %x, flags %d", tag, done.Flags)
	}
}

// TestAdopt: an association begins once, while its Endpoint is open, and not when its handshake was given up meanwhile.
func TestAdopt(t *testing.T) {
	e := endpoint(t, true, Config{})
	at := netip.MustParseAddrPort("127.0.0.1:9")
	p := e.newPath(at, 9, e.setup(), e.setup())
	if h := new(handshake); e.adopt(p, h) {
		t.Error("a handshake that was given up")
	}
	if !e.adopt(p, nil) || e.adopt(p, nil) {
		t.Error("not once")
	}
	testrig.Must(t, e.Close())
	if e.adopt(e.newPath(at, 10, e.setup(), e.setup()), nil) {
		t.Error("on a closed socket")
	}
	if p.reason == nil || errors.Is(p.reason, lowerlayer.ErrRestarted) {
		t.Errorf("ended over %v", p.reason)
	}
}

// TestInitTags: an INIT has no Verification Tag, and one of its own; others are not answered.
//
// RFC 9260, sections 3.3.2 and 8.5.1, A.
func TestInitTags(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	s.says(1, chunk.TypeInit, 0, s.ours.Append(nil))
	s.ours.Tag = 0
	s.says(0, chunk.TypeInit, 0, s.ours.Append(nil))
	s.says(815, chunk.TypeHeartbeat, 0, nil) // which is answered after them
	if _, tag, got := s.answer(); tag != 815 {
		t.Errorf("answered with type %d, tag %x", got.Type, tag)
	}
}

// TestBehindCookieEcho: what comes in the packet of a COOKIE ECHO is the association's: this stranger sends nothing
// again.
//
// RFC 9260, section 5.1, D: it "can be bundled with any pending outbound DATA chunks".
func TestBehindCookieEcho(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs := s.asks()
	first := chunk.Data{TSN: s.ours.TSN, Stream: 1, PPID: 16, Bytes: []byte("first")}
	s.sends(s.packet(theirs.Tag, chunk.Chunk{Type: chunk.TypeCookieEcho, Value: theirs.Cookie}, first.Chunk(plain)))
	s.hears(chunk.TypeCookieAck)
	c, err := e.Accept(t.Context())
	testrig.Must(t, err)
	if m := within(t, run(c).messages); string(m.Data) != "first" {
		t.Errorf("got %q", m.Data)
	}
}

// TestAskedAgain: an INIT that is not answered is sent again after half a second, a second more, and so on by the
// double, until the time for the handshake is over.
func TestAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testrig.Link{}.Sockets()
		client := New(a, false, Config{})
		defer func() { _, _ = client.Close(), b.Close() }()
		began, asked := time.Now(), []time.Duration{}
		go func() {
			for buf := make([]byte, 2000); ; {
				n, _, err := b.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				if p, ok := parse(buf[:n]); !ok || p.chunks[0].Type != chunk.TypeInit {
					t.Errorf("% x", buf[:n])
				}
				asked = append(asked, time.Since(began).Round(10*time.Millisecond))
			}
		}()
		if _, err := client.Dial(t.Context(), b.LocalAddr().(*net.UDPAddr).AddrPort()); !errors.Is(err,
			lowerlayer.ErrNoAnswer) {
			t.Error(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond,
			7500 * time.Millisecond}; !slices.Equal(asked, want) {
			t.Errorf("asked at %v, want %v", asked, want)
		}
	})
}

// TestHandshakeWithOthers: of a handshake only what comes from the address and the port of SCTP that are dialed counts,
// even if it has the tag.
func TestHandshakeWithOthers(t *testing.T) {
	s, c, _ := dialed(t)
	theirs, _ := parseSetup(c.Value)
	port, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	others := []*stranger{{T: t, pc: port, to: s.to}}
	// not every system has it
	if address, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}); err == nil {
		others = append(others, &stranger{T: t, pc: address, to: s.to, as: s.port()})
	}
	for _, other := range others {
		defer func() { _ = other.pc.Close() }()
		other.says(theirs.Tag, chunk.TypeAbort, 0, nil)
	}
	ours := chunk.Setup{Tag: 77, Window: 64 << 10, Out: 4, In: 4, TSN: 5, Cookie: []byte("cookie"),
		Adaptation: sctp.AdaptationDDP, HasAdaptation: true}
	s.says(theirs.Tag, chunk.TypeInitAck, 0, ours.Append(nil))
	if tag, echo := s.hears(chunk.TypeCookieEcho); tag != 77 || string(echo.Value) != "cookie" {
		t.Errorf("COOKIE ECHO with tag %x: %q", tag, echo.Value)
	}
}

// TestUselessInitAck: an INIT ACK without a cookie, or without streams, refuses the association.
func TestUselessInitAck(t *testing.T) {
	for name, change := range map[string]func(*chunk.Setup){"no cookie": func(s *chunk.Setup) { s.Cookie = nil },
		"no streams": func(s *chunk.Setup) { s.In = 0 }} {
		s, c, refused := dialed(t)
		theirs, _ := parseSetup(c.Value)
		ours := chunk.Setup{Tag: 77, Window: 64 << 10, Out: 4, In: 4, TSN: 5, Cookie: []byte("cookie"),
			Adaptation: sctp.AdaptationDDP, HasAdaptation: true}
		change(&ours)
		s.says(theirs.Tag, chunk.TypeInitAck, 0, ours.Append(nil))
		if err := within(t, refused); !errors.Is(err, lowerlayer.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
