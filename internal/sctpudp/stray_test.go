package sctpudp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestStray: what belongs to no association is answered as RFC 9260, section 8.4, says, or not at all, and never by
// more bytes than it has.
func TestStray(t *testing.T) {
	for _, listening := range []bool{true, false} {
		e := endpoint(t, listening, Config{})
		s := meet(t, e)
		cause := func(kind uint16) []byte {
			p := chunk.Parameter{Type: kind, Value: make([]byte, 4)}
			return p.Append(nil)
		}
		abort := int(chunk.TypeAbort)
		for _, c := range []struct {
			name   string
			tag    uint32
			chunks []chunk.Chunk
			want   int // type of the answer; -1 is none
		}{
			// rule 2
			{"ABORT", 4711, []chunk.Chunk{{Type: chunk.TypeSack}, {Type: chunk.TypeAbort},
				{Type: chunk.TypeShutdownAck}}, -1},
			{"SHUTDOWN ACK", 4711, []chunk.Chunk{{Type: chunk.TypeCookieAck}, {Type: chunk.TypeShutdownAck}},
				int(chunk.TypeShutdownComplete)},
			{"SHUTDOWN COMPLETE", 4711, []chunk.Chunk{{Type: chunk.TypeShutdownComplete}}, -1},
			{"COOKIE ACK", 4711, []chunk.Chunk{{Type: chunk.TypeCookieAck}, {Type: chunk.TypeData}}, -1}, // rule 7
			{"Stale Cookie", 4711, []chunk.Chunk{{Type: chunk.TypeError, Value: cause(chunk.CauseStaleCookie)}}, -1},
			{"ERROR", 4711, []chunk.Chunk{{Type: chunk.TypeError, Value: cause(1)}}, abort}, // rule 8
			{"INIT ACK", 4711, []chunk.Chunk{{Type: chunk.TypeInitAck}}, abort},
			{"DATA", 4711, []chunk.Chunk{{Type: chunk.TypeData}}, abort},
			{"SACK", 4711, []chunk.Chunk{{Type: chunk.TypeSack}}, abort},
			{"HEARTBEAT", 4711, []chunk.Chunk{{Type: chunk.TypeHeartbeat}}, abort},
			{"SHUTDOWN", 4711, []chunk.Chunk{{Type: chunk.TypeShutdown}}, abort},
			{"I-DATA", 4711, []chunk.Chunk{{Type: 64}}, abort},
			{"no tag", 0, []chunk.Chunk{{Type: chunk.TypeData}}, -1}, // section 8.5.1, A
		} {
			b := s.packet(c.tag, c.chunks...)
			s.sends(b)
			s.says(815, chunk.TypeHeartbeat, 0, nil) // which is answered after it
			if c.want >= 0 {
				if n, tag, got := s.answer(); int(got.Type) != c.want || tag != c.tag ||
					got.Flags != chunk.FlagT || n > len(b) {
					t.Errorf("%s: %d bytes with type %d, tag %d, flags %d", c.name, n, got.Type, tag, got.Flags)
				}
			}
			if _, tag, got := s.answer(); tag != 815 || got.Type != chunk.TypeAbort {
				t.Errorf("%s: then type %d, tag %d", c.name, got.Type, tag)
			}
		}
	}
}

// answer returns the next packet, of one chunk, and its size.
func (s *stranger) answer() (size int, tag uint32, c chunk.Chunk) {
	s.Helper()
	b := make([]byte, 1<<16)
	testrig.Must(s.T, s.pc.SetReadDeadline(time.Now().Add(patience)))
	n, _, err := s.pc.ReadFromUDPAddrPort(b)
	testrig.Must(s.T, err)
	p, _ := parse(b[:n])
	if len(p.chunks) != 1 || p.Source != s.to.Port() || p.Destination != s.port() {
		s.Fatalf("a bad packet: % x", b[:n])
	}
	return n, p.Tag, p.chunks[0]
}

// TestStrayFlood: a flood of strays, and of INITs that begin nothing, is answered so often and no more.
func TestStrayFlood(t *testing.T) {
	now := time.Unix(1000, 0)
	var b budget
	for second, most := range []int{strays, strays, strays} {
		answered := 0
		for range 1000 {
			if b.spend(now.Add(time.Duration(second) * time.Second)) {
				answered++
			}
		}
		if answered != most {
			t.Errorf("%d answers in second %d, want %d", answered, second, most)
		}
	}
	if now = now.Add(2*time.Second + 10*time.Millisecond); b.spend(now) {
		t.Error("one more within 10 ms")
	}
	if now = now.Add(10 * time.Millisecond); !b.spend(now) {
		t.Error("none after 20 ms")
	}
	// The budget is the Endpoint's, whoever sends. The good packet gets through all the same.
	e := endpoint(t, true, Config{})
	for range 3 {
		s := meet(t, e)
		for range 2 * strays {
			s.says(4711, chunk.TypeData, 3, nil)
		}
	}
	dial(t, endpoint(t, false, Config{}), e)
	if e.answers.left > strays/2 {
		t.Errorf("%v answers are left after a flood", e.answers.left)
	}
}

// TestSpoofedStray: a stray in the name of a peer that has an association does nothing to it.
func TestSpoofedStray(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	s.says(theirs.Tag+1, chunk.TypeData, 3, data(1000, 0, 16, "not mine"))
	s.says(theirs.Tag, chunk.TypeData, 7, data(1000, 0, 16, "alive"))
	if m := within(t, c.messages); string(m.Data) != "alive" {
		t.Errorf("got %q", m.Data)
	}
	s.hears(chunk.TypeSack)
}

// TestAfterRestart: a peer that has lost its associations says so at the first packet, long before silence would.
func TestAfterRestart(t *testing.T) {
	server := endpoint(t, true, Config{})
	at := server.at()
	a, _ := dial(t, endpoint(t, false, Config{}), server)
	testrig.Must(t, server.Close())
	pc, err := listen(at)
	testrig.Must(t, err)
	again := New(pc, true, Config{})
	defer func() { _ = again.Close() }()
	testrig.Must(t, a.Send(sctp.Message{PPID: 16, Data: []byte("still there?")}))
	if err := within(t, a.lost); !errors.Is(err, lowerlayer.ErrAborted) {
		t.Errorf("lost: %v", err)
	}
}

// TestTurnedAway: an INIT to a socket on which nobody listens, or not any more, is refused at once.
func TestTurnedAway(t *testing.T) {
	retired := endpoint(t, true, Config{})
	dial(t, endpoint(t, false, Config{}), retired)
	retired.Retire()
	for name, at := range map[string]netip.AddrPort{"a client": endpoint(t, false, Config{}).at(),
		"retired": retired.at()} {
		if _, err := endpoint(t, false, Config{}).Dial(t.Context(), at); !errors.Is(err, lowerlayer.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
