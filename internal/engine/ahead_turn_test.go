package engine

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// What had its turn is held no longer: there is room for as much again.
func TestAheadBoundsAreFreed(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead = Ahead{Segments: 3, Bytes: 3 * 19} })
	r := s.region(make([]byte, 10), remoteAll)
	for at := uint64(0); at < 12; at += 4 {
		for _, i := range []uint64{3, 2, 1} { // which have no receive
			if !s.arrives(at+i, send(uint32(at+i+1), []byte{1})) {
				t.Fatalf("segment %d is not taken", at+i)
			}
		}
		for id := range uint64(4) {
			s.receive(at+id, SGE{Region: r, Offset: 0, Length: 1})
		}
		s.arrives(at, send(uint32(at+1), []byte{1}))
		if len(s.done) != int(at)+4 {
			t.Fatalf("%d Sends received, want %d", len(s.done), at+4)
		}
	}
	if st := s.Machine.Stats().Ahead; st.Held != 9 || st.HeldBytes != 9*19 || st.MostBytes != 3*19 {
		t.Errorf("%+v", st)
	}
}

// Segments have their turn from the number at which the peer begins.
func TestAheadBeginsAtFirst(t *testing.T) {
	const first = 1 << 40
	s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.Params.First = first })
	s.receive(1)
	s.receive(2)
	s.arrives(first+1, send(2, nil))
	if len(s.done) != 0 || s.Machine.HeldAhead() == 0 {
		t.Fatalf("%d Sends received ahead of their turn, %d bytes held", len(s.done), s.Machine.HeldAhead())
	}
	s.arrives(first, send(1, nil))
	s.completion(success(1, OpReceive, 0))
	s.completion(success(2, OpReceive, 0))
}

// Bounds that are none are the usual ones.
func TestAheadBoundsBelowZero(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder, func(s *setup) {
		s.Params.Ahead = Ahead{Segments: -1,
			Bytes: -1, Again: true}
	})
	for at := uint64(1); at <= DefaultAheadSegments+1; at++ {
		if taken := s.arrives(at, send(uint32(at+1), nil)); taken != (at <= DefaultAheadSegments) {
			t.Fatalf("segment %d taken: %t", at, taken)
		}
	}
}

// The table of what waits is given back by a Trim when nothing waits, and not before.
func TestTrimAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.receive(1)
	wantSlack := func(want bool) {
		t.Helper()
		if s.Machine.ahead.slack() != want {
			t.Errorf("slack: %t", !want)
		}
	}
	s.arrives(1, send(1, nil))
	wantSlack(false)
	s.Machine.Trim()
	s.arrives(0, write(1, 0, nil))
	s.completion(success(1, OpReceive, 0))
	wantSlack(true)
	s.Machine.Trim()
	wantSlack(false)
}

// A segment right at the end of the peer's half lies after it, whichever was there first, and
// is not delivered.
//
// Proves D31.
func TestSegmentAtTheEnd(t *testing.T) {
	for name, first := range map[string]func(s *sender){
		"the end first":     func(s *sender) { s.ends(1); s.arrives(1, send(1, nil)) },
		"the segment first": func(s *sender) { s.arrives(1, send(1, nil)); s.ends(1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.HalfClose = true })
			s.receive(1)
			first(s)
			s.wantState(RTS)
			s.arrives(0, write(1, 0, nil))
			if !errors.Is(s.Machine.Cause(), ErrLost) || s.Machine.State() != Error {
				t.Errorf("%v in state %v", s.Machine.Cause(), s.Machine.State())
			}
			s.completion(flushed(1, OpReceive))
		})
	}
}

// Nothing is placed ahead by a segment of another version of DDP or of RDMAP, nor in a state in
// which nothing may come any more.
//
// Proves D13, P05, P56.
func TestNotPlacedAhead(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *sender)
		change func(h *ddp.Header)
	}{
		"version of DDP":   {func(*sender) {}, func(h *ddp.Header) { h.Version = 2 }},
		"version of RDMAP": {func(*sender) {}, func(h *ddp.Header) { h.RsvdULP |= 0xc0 }},
		"Closing":          {func(s *sender) { s.modify(Closing) }, func(*ddp.Header) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s := overMessages(t, mpa.RoleInitiator)
			buf := make([]byte, 5)
			r := s.region(buf, remoteAll)
			c.before(s)
			s.arrives(1, write(r.STag(), 0, []byte("ahead")).with(c.change))
			if string(buf) != "\x00\x00\x00\x00\x00" {
				t.Errorf("%q", buf)
			}
			if st := s.Machine.Stats().Ahead; st.Placed != 0 || st.Held != 1 ||
				st.HeldBytes != 19 || st.MostBytes != 19 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A Send for which there is no receive as yet waits as a whole, and gets the one that is posted
// before its turn.
//
// Proves P31.
func TestSendAheadOfItsReceive(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator)
	buf := make([]byte, 10)
	r := s.region(buf, memory.LocalWrite)
	s.arrives(0, write(1, 0, nil))
	s.arrives(2, send(1, []byte("early")))
	s.receive(1, all(r, 10))
	s.arrives(1, write(1, 0, nil))
	s.completion(success(1, OpReceive, 5))
	if st := s.Machine.Stats().Ahead; string(buf[:5]) != "early" || st.Placed != 0 || st.Held != 1 {
		t.Errorf("%q, %+v", buf, st)
	}
}

// Segments count when they have their turn.
func TestCountedInTurn(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	wantCounted := func(segments, n uint64) {
		t.Helper()
		if st := s.Machine.Stats(); st.RecvFPDUs != segments || st.RecvStream != n {
			t.Errorf("%d segments, %d bytes; want %d, %d", st.RecvFPDUs, st.RecvStream, segments, n)
		}
	}
	s.receive(1)
	s.receive(2, SGE{Region: s.region(make([]byte, 4), memory.LocalWrite), Offset: 0, Length: 4})
	s.arrives(1, send(2, []byte("four")))
	wantCounted(0, 0)
	s.arrives(0, send(1, nil))
	wantCounted(2, 18+22)
}

// Whatever the LLP tells of the peer has the FIN wait for another round trip: it may be
// a part of what brings the peer's next Read.
//
// Proves D30.
func TestQuietOverMessages(t *testing.T) {
	for name, event := range map[string]func(s *sender){
		"segment": func(s *sender) { s.arrives(0, write(1, 0, nil)) },
		"end":     func(s *sender) { s.ends(5) },
		"error":   func(s *sender) { s.Machine.Broken(s.clock, 5, &mpa.Error{Code: mpa.CodeCRC}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := overMessages(t, mpa.RoleInitiator)
			s.closeFar()
			s.advance(rtt - 1)
			event(s)
			s.advance(rtt + activeWait - 1)
			s.wantLLP()
			s.advance(1)
			s.wantLLP(Finish)
		})
	}
}

// A receive that a message has reached is not taken back: not the one that is being filled, nor
// those of messages that have come ahead, or that a message before those will get. The next one is.
func TestTakeBackBehindMessages(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator, func(s *setup) { s.RecvDepth = 4 })
	r := s.region(make([]byte, 4), memory.LocalWrite)
	post := func(id uint64) {
		w := RecvWork{ID: id, Cookie: id, SGL: listOf(all(r, 4))}
		if err := s.Machine.PostReceive(&w); err != nil {
			t.Fatal(err)
		}
	}
	wantTaken := func(id uint64, want bool) {
		t.Helper()
		if s.Machine.TakeBackReceive(id) != want {
			t.Errorf("receive %d: %t", id, !want)
		}
	}
	for id := range uint64(4) {
		post(id)
	}
	s.arrives(0, send(1, []byte("a")).more())
	post(4) // the queue is full beside the one that is being filled
	wantTaken(0, false)
	wantTaken(1, true)
	post(5)
	s.arrives(3, send(3, []byte("c"))) // it is in the third of 0, 2, 3, 4, 5
	for _, id := range []uint64{0, 2, 3} {
		wantTaken(id, false)
	}
	wantTaken(4, true)
	s.arrives(1, send(1, []byte("b")).at(1))
	s.arrives(2, send(2, nil))
	if len(s.done) != 3 || s.done[0].ID != 0 || s.done[1].ID != 2 || s.done[2].ID != 3 || s.done[2].Length != 1 {
		t.Errorf("completed %+v", s.done)
	}
}

// What waits for its turn is forgotten when it cannot have it any more.
func TestForgottenAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(s *sender){
		"lost":       func(s *sender) { s.Machine.Failed(s.clock, errReset) },
		"Terminate":  func(s *sender) { s.modify(Terminate) },
		"own, Error": func(s *sender) { s.modify(Error) },
	} {
		s := overMessages(t, mpa.RoleInitiator)
		s.arrives(1, send(1, []byte("early")))
		end(s)
		if a := s.Machine.ahead; a.held != nil || a.bytes != 0 {
			t.Errorf("%s: %d segments are held, with %d bytes", name, len(a.held), a.bytes)
		}
	}
}
