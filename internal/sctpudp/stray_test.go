package sctpudp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestStray: what belongs to no association is answered as RFC 9260, section 8.4, says, or not at all, and never by
// more octets than it has.
func TestStray(t *testing.T) {
	for _, listening := range []bool{true, false} {
		e := endpoint(t, listening, Config{})
		s := meet(t, e)
		for _, c := range []struct {
			name string
			kind byte
			want int // type of the answer; -1 is none
		}{
			{"DATA", chunkData, chunkAbort}, {"SACK", chunkSack, chunkAbort}, {"HEARTBEAT", chunkHeartbeat, chunkAbort},
			{"SHUTDOWN", chunkShutdown, chunkAbort}, {"SHUTDOWN ACK", chunkShutdownAck, chunkShutdownComplete}, {"I-DATA", 64, chunkAbort},
			{"ABORT", chunkAbort, -1}, {"SHUTDOWN COMPLETE", chunkShutdownComplete, -1}, {"COOKIE ACK", chunkCookieAck, -1},
			{"ERROR", chunkError, -1}, {"INIT ACK", chunkInitAck, -1},
		} {
			b := seal(appendChunk(start(s.port(), s.to.Port(), 4711), c.kind, 0, nil))
			s.sends(b)
			s.says(815, chunkHeartbeat, 0, nil) // which is answered after it
			if c.want >= 0 {
				if n, tag, got := s.answer(); int(got.kind()) != c.want || tag != 4711 || got.flags() != flagT || n > len(b) {
					t.Errorf("%s: %d octets with type %d, tag %d, flags %d", c.name, n, got.kind(), tag, got.flags())
				}
			}
			if _, tag, got := s.answer(); tag != 815 || got.kind() != chunkAbort {
				t.Errorf("%s: then type %d, tag %d", c.name, got.kind(), tag)
			}
		}
	}
}

// answer returns the next packet, of one chunk, and its size.
func (s *stranger) answer() (octets int, tag uint32, c chunk) {
	s.Helper()
	b := make([]byte, 1<<16)
	testrig.Must(s.T, s.pc.SetReadDeadline(time.Now().Add(patience)))
	n, _, err := s.pc.ReadFromUDPAddrPort(b)
	testrig.Must(s.T, err)
	p, chunks := parse(b[:n])
	if len(chunks) != 1 || p.source() != s.to.Port() || p.destination() != s.port() {
		s.Fatalf("a bad packet: % x", b[:n])
	}
	return n, p.tag(), chunks[0]
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
			s.says(4711, chunkData, 3, nil)
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
	s.says(theirs.tag+1, chunkData, 3, data(1000, 0, 16, "not mine"))
	s.says(theirs.tag, chunkData, 7, data(1000, 0, 16, "alive"))
	if m := within(t, c.messages); string(m.Data) != "alive" {
		t.Errorf("got %q", m.Data)
	}
	if _, got := s.hears(chunkSack); got == nil {
		t.Error("no SACK")
	}
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
	if err := within(t, a.lost); !errors.Is(err, ErrAborted) {
		t.Errorf("lost: %v", err)
	}
}

// TestTurnedAway: an INIT to a socket on which nobody listens, or not any more, is refused at once.
func TestTurnedAway(t *testing.T) {
	retired := endpoint(t, true, Config{})
	dial(t, endpoint(t, false, Config{}), retired)
	retired.Retire()
	for name, at := range map[string]netip.AddrPort{"a client": endpoint(t, false, Config{}).at(), "retired": retired.at()} {
		if _, err := endpoint(t, false, Config{}).Dial(t.Context(), at); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
