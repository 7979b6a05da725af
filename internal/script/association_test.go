package script

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// patience bounds what a test waits for. Nothing depends on how long it takes.
const patience = time.Minute

func later() time.Time { return time.Now().Add(patience) }

// listener is an SCTP of another make, which echoes what it gets.
func listener(t *testing.T) *net.UDPAddr {
	t.Helper()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	e := sctpudp.New(pc, true, sctpudp.Config{})
	t.Cleanup(func() { _ = e.Close() })
	go func() {
		for {
			c, err := e.Accept(context.Background())
			if err != nil {
				return
			}
			got := make(chan sctp.Message, 100)
			go func() {
				for m := range got {
					if c.Send(m) != nil {
						return
					}
				}
			}()
			go c.Run(func(m sctp.Message) { got <- m }, func(uint16, uint64) {}, func(error) { close(got) })
		}
	}()
	return pc.LocalAddr().(*net.UDPAddr)
}

func associate(t *testing.T, to *net.UDPAddr, ours chunk.Setup) (*Association, error) {
	t.Helper()
	conn, err := net.DialUDP("udp4", nil, to)
	testrig.Must(t, err)
	return Associate(t.Context(), conn, ours, later())
}

// TestAssociation sends messages that are echoed, in order and out of it, and leaves.
func TestAssociation(t *testing.T) {
	a, err := associate(t, listener(t), DDPSetup())
	testrig.Must(t, err)
	if !a.Peer.Indicates(sctp.AdaptationDDP) || a.Peer.Out != a.Peer.In {
		t.Errorf("%+v", a.Peer)
	}
	s := a.Session(3)
	for range 3 {
		a.Send(s.Control(sctp.Control{Function: sctp.FunctionInitiate, PrivateData: make([]byte, 500)}))
	}
	ordered := s.Function(sctp.FunctionTerminate)
	ordered.Ordered = true
	a.Send(ordered)
	for ssn := range uint16(4) {
		m, ok := s.Next(later())
		if !ok || m.Stream != 3 || m.PPID != sctp.PPIDControl || binary.BigEndian.Uint16(m.Data) != ssn ||
			m.Ordered || m.Chunks != 1 {
			t.Fatalf("%d: %+v, %t", ssn, m, ok)
		}
	}
	if !a.Settle(later()) {
		t.Error("not all was acknowledged")
	}
	a.Leave(later())
	if end, why := a.End(); end != FIN || why != "" {
		t.Errorf("%v %q", end, why)
	}
}

// TestRefused: one that is not of DDP is refused.
func TestRefused(t *testing.T) {
	to := listener(t)
	for _, change := range []func(*chunk.Setup){func(s *chunk.Setup) { s.HasAdaptation = false },
		func(s *chunk.Setup) { s.Adaptation = 7 }} {
		ours := DDPSetup()
		change(&ours)
		if _, err := associate(t, to, ours); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	}
}

// TestFragments: a message in parts arrives as one, and comes back.
func TestFragments(t *testing.T) {
	a, err := associate(t, listener(t), DDPSetup())
	testrig.Must(t, err)
	defer a.Close()
	sent := a.Session(0).Function(sctp.FunctionInitiate)
	a.SendParts(sent, 2)
	if m, ok := a.Next(later()); !ok || !bytes.Equal(m.Data, sent.Data) || m.Chunks != 1 {
		t.Errorf("%+v, %t", m, ok)
	}
}

// TestJoin puts parts together in whatever order they come, and takes no chunk twice.
func TestJoin(t *testing.T) {
	a := &Association{cum: 9, ahead: map[uint32]bool{}}
	part := func(tsn uint32, flags byte, text string) {
		d := chunk.Data{TSN: tsn, Stream: 1, PPID: 16, Bytes: []byte(text)}
		a.takeData(d.Chunk(flags))
	}
	part(12, chunk.FlagEnding, "c")
	part(12, chunk.FlagEnding, "c")
	part(10, chunk.FlagBeginning, "a")
	part(11, 0, "b")
	part(11, 0, "b")
	if len(a.got) != 1 || !bytes.Equal(a.got[0].Data, []byte("abc")) || a.got[0].Chunks != 3 || a.cum != 12 ||
		a.parts.Len()+len(a.ahead) > 0 {
		t.Errorf("%+v", a)
	}
}

// TestHeld has a peer whose messages all come ahead of one that does not: no more is kept of them than a few MiB. What
// is taken counts no more.
func TestHeld(t *testing.T) {
	const size = 64 << 10
	begin := func() (*Session, func(n int)) {
		near, far := net.Pipe()
		far.Close()
		a := &Association{conn: near, cum: 9, ahead: map[uint32]bool{}, unacked: map[uint32][]byte{}}
		return a.Session(1), func(n int) {
			b := binary.BigEndian.AppendUint16(make([]byte, 0, size), uint16(n))
			d := chunk.Data{TSN: uint32(10 + n), Stream: 1, PPID: sctp.PPIDSegment, Bytes: b[:size]}
			a.takeData(d.Chunk(chunk.FlagsWhole))
		}
	}
	past := time.Unix(1, 0)
	s, come := begin()
	for n := 1; n < 1000; n++ {
		come(n)
		if m, ok := s.Next(past); ok {
			t.Fatalf("message %d came before the first: % x", n, m.Data[:2])
		}
	}
	if kept := len(s.ahead) * size; s.on.held != kept || kept < maxHeld || kept > maxHeld+size {
		t.Errorf("%d bytes are held, and %d counted", kept, s.on.held)
	}
	s, come = begin()
	for _, n := range []int{1, 2, 0} {
		come(n)
	}
	for n := range 3 {
		if m, ok := s.Next(past); !ok || m.Data[1] != byte(n) {
			t.Errorf("message %d: % x", n, m.Data[:2])
		}
	}
	if s.on.held != 0 {
		t.Errorf("%d bytes are counted of what was taken", s.on.held)
	}
}

// FuzzChunks takes chunks that may be anything.
func FuzzChunks(f *testing.F) {
	s := DDPSetup()
	f.Add(byte(chunk.TypeInitAck), byte(0), s.Append(nil))
	f.Add(byte(chunk.TypeData), byte(3), make([]byte, 20))
	f.Add(byte(chunk.TypeAbort), byte(0), []byte{0, 12, 0, 8, 'b', 'y', 'e', '.'})
	f.Fuzz(func(t *testing.T, kind, flags byte, value []byte) {
		near, far := net.Pipe()
		defer near.Close()
		far.Close()
		a := &Association{conn: near, unacked: map[uint32][]byte{}, ahead: map[uint32]bool{}}
		a.takeAll([]chunk.Chunk{{Type: chunk.Type(kind), Flags: flags, Value: value}})
		if a.parts.Len()+len(a.got) > 1 {
			t.Error("too much is kept")
		}
	})
}

// TestAnswer has an SCTP of another make open associations with an end that is played by hand, one after the other on a
// socket.
func TestAnswer(t *testing.T) {
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	defer pc.Close()
	to := pc.LocalAddr().(*net.UDPAddr).AddrPort()
	for range 2 {
		own, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		testrig.Must(t, err)
		e := sctpudp.New(own, false, sctpudp.Config{})
		got := make(chan sctp.Message, 1)
		go func() {
			c, err := e.Dial(t.Context(), to)
			if err != nil {
				t.Error(err)
				return
			}
			go c.Run(func(m sctp.Message) { got <- m }, func(uint16, uint64) {}, func(error) {})
			testrig.Should(t, c.Send(sctp.Message{Stream: 5, PPID: sctp.PPIDControl, Data: []byte{0, 0, 0, 1}}))
		}()
		a, err := Answer(t.Context(), pc, DDPSetup(), later())
		testrig.Must(t, err)
		stream, ok := a.Asked(later())
		if !ok || stream != 5 || !a.Peer.Indicates(sctp.AdaptationDDP) {
			t.Fatalf("stream %d, %t, of %+v", stream, ok, a.Peer)
		}
		s := a.Session(5)
		if m, ok := s.Next(later()); !ok || !bytes.Equal(m.Data, []byte{0, 0, 0, 1}) {
			t.Errorf("%+v, %t", m, ok)
		}
		a.Send(s.Function(sctp.FunctionAccept))
		if m := <-got; !bytes.Equal(m.Data, []byte{0, 0, 0, 2}) {
			t.Errorf("%+v", m)
		}
		a.Leave(later())
		if end, _ := a.End(); end != FIN {
			t.Errorf("it ended by %v", end)
		}
		testrig.Should(t, e.Close())
	}
	if _, err := Answer(t.Context(), pc, DDPSetup(), time.Now().Add(time.Millisecond)); !errors.Is(err, errNotYet) {
		t.Error(err)
	}
}

// TestAnswerRefused: who dials wants an indication of DDP.
func TestAnswerRefused(t *testing.T) {
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	defer pc.Close()
	own, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	e := sctpudp.New(own, false, sctpudp.Config{})
	go func() { _, _ = e.Dial(t.Context(), pc.LocalAddr().(*net.UDPAddr).AddrPort()) }()
	if _, err := Answer(t.Context(), pc, chunk.Setup{Out: 1, In: 1}, later()); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	testrig.Should(t, e.Close())
}
