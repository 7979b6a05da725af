package engine

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// What is held ahead is bounded, in segments and in bytes. An LLP that brings segments again is
// told that one was not taken; with one that does not the connection ends. What has its turn
// is taken in any case.
func TestAheadIsBounded(t *testing.T) {
	empty := func(msn uint32) fpdu { return send(msn, nil) }
	full := func(msn uint32) fpdu { return send(msn, numbered(100)) }
	for name, c := range map[string]struct {
		bounds Ahead
		f      func(msn uint32) fpdu
	}{
		"segments": {Ahead{Segments: 3}, empty},
		"bytes":    {Ahead{Bytes: 3 * 118}, full},
	} {
		for _, again := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := overMessages(t, mpa.RoleResponder, func(s *setup) {
					s.Params.Ahead = c.bounds
					s.Params.Ahead.Again = again
				})
				for at := uint64(1); at <= 4; at++ {
					if taken := s.arrives(at, c.f(uint32(at+1))); taken != (at < 4) {
						t.Errorf("segment %d taken: %t", at, taken)
					}
				}
				if s.Machine.Stats().Ahead.Dropped != 1 {
					t.Errorf("%+v", s.Machine.Stats().Ahead)
				}
				if !again {
					s.wantCause(rdmap.CodeMPALocalCatastrophic, false)
					s.sends(terminate(rdmap.CodeMPALocalCatastrophic))
					return
				}
				r := s.region(make([]byte, 500), remoteAll)
				for id := range 5 {
					s.receive(uint64(id), SGE{Region: r, Offset: 100 * id, Length: 100})
				}
				s.arrives(0, c.f(1))
				s.arrives(4, c.f(5))
				if len(s.done) != 5 {
					t.Errorf("%d of 5 Sends received", len(s.done))
				}
			})
		}
	}
}

// Placed payload is not held: any amount of it fits.
func TestPlacedIsNotHeld(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead = Ahead{Bytes: 1} })
	r := s.region(make([]byte, 1000), remoteAll)
	for at := uint64(1); at <= 10; at++ {
		if !s.arrives(at, write(r.STag(), 100*(at-1), numbered(100))) {
			t.Fatalf("segment %d", at)
		}
	}
	s.wantState(RTS)
}

// The end of the peer's half has its turn after all that was sent before it.
//
// Proves D32, D31.
func TestEndHasItsTurn(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.receive(1)
	s.ends(2)
	s.arrives(1, write(1, 0, nil))
	s.wantNotices()
	s.arrives(0, send(1, nil))
	s.completion(success(1, OpReceive, 0))
	s.wantNotices(NoticeHalfClosed, NoticeCloseComplete)
	s.wantLLP(Drop)
	s.wantState(Idle)

	s = overMessages(t, mpa.RoleResponder, func(s *setup) { s.HalfClose = true })
	s.arrives(2, write(1, 0, nil))
	s.ends(2)
	s.arrives(1, write(1, 0, nil))
	s.wantState(RTS)
	s.arrives(0, write(1, 0, nil))
	if !errors.Is(s.Machine.Cause(), ErrLost) || s.Machine.State() != Error {
		t.Errorf("%v in state %v after segments after the end", s.Machine.Cause(), s.Machine.State())
	}

	s = overMessages(t, mpa.RoleResponder, func(s *setup) { s.HalfClose = true })
	s.arrives(0, write(1, 0, nil))
	s.ends(0)
	if !errors.Is(s.Machine.Cause(), ErrLost) || s.Machine.State() != Error {
		t.Errorf("%v in state %v after an end before what has come", s.Machine.Cause(), s.Machine.State())
	}

	s = overMessages(t, mpa.RoleResponder, func(s *setup) { s.HalfClose = true })
	s.ends(0)
	s.arrives(0, write(1, 0, nil))
	if !errors.Is(s.Machine.Cause(), ErrLost) || s.Machine.State() != Error {
		t.Errorf("%v in state %v after a segment after the end", s.Machine.Cause(), s.Machine.State())
	}
}

// The end of our half is told to the LLP after what we have sent, and the peer's is awaited.
//
// Proves D30.
func TestCloseOverMessages(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator)
	s.receive(1)
	s.post(work(2, OpSend))
	s.closeOrderly()
	s.sends(send(1, nil))
	s.wantLLP(Finish)
	s.arrives(0, send(1, nil))
	s.completion(success(2, OpSend, 0), success(1, OpReceive, 0))
	s.ends(1)
	s.wantLLP(Drop)
	s.wantState(Idle)
}

// An error that the LLP has found has its turn, too.
//
// Proves Q16, R08.
func TestBroken(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.receive(1)
	s.Machine.Broken(s.clock, 1, &mpa.Error{Code: mpa.CodeLocalCatastrophic, Offset: 1, Reason: "wrong"})
	s.wantState(RTS)
	s.arrives(0, send(1, nil))
	s.completion(success(1, OpReceive, 0))
	if f := s.wantCause(rdmap.CodeMPALocalCatastrophic, false); f.Offset != 1 {
		t.Errorf("%v", f)
	}
	s.sends(terminate(rdmap.CodeMPALocalCatastrophic))

	s = overMessages(t, mpa.RoleResponder) // it has its turn when it comes
	s.receive(1)
	s.arrives(0, send(1, nil))
	s.Machine.Broken(s.clock, 1, &mpa.Error{Code: mpa.CodeCRC, Offset: 1})
	s.collectOutputs()
	s.completion(success(1, OpReceive, 0))
	s.wantCause(rdmap.CodeMPACRC, false)
}

// Either side may send first. A Ready-to-Receive indication is sent where it was agreed on, and is
// invisible; nothing waits for it, and something else may come first.
//
// Proves C04, E09.
func TestEitherSideFirst(t *testing.T) {
	for _, kind := range []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend} {
		agreed := func(s *setup) { s.PeerToPeer, s.Negotiated.RTR = true, kind }
		p := newPair(t, both(agreed), both(messages))
		p.ab.mail, p.ba.mail = &mail{}, &mail{}
		p.b.post(work(1, OpSend))
		p.b.receive(2)
		p.a.receive(3)
		p.ab.lost = true // so far
		p.run()
		p.a.completion(success(3, OpReceive, 0))
		p.b.completion(success(1, OpSend, 0))
		p.ab.lost = false

		s := overMessages(t, mpa.RoleResponder, agreed, func(s *setup) { s.StrictRTR = true })
		s.receive(1)
		s.arrives(0, write(1, 0, nil).more())
		s.arrives(1, write(1, 0, nil))
		s.arrives(2, send(1, nil))
		s.completion(success(1, OpReceive, 0))
	}
	// A Send arrives before the indication, which takes no receive: it is not known which one
	// the Send will get.
	s := overMessages(t, mpa.RoleResponder, func(s *setup) { s.PeerToPeer, s.Negotiated.RTR = true, mpa.RTRSend })
	buf := make([]byte, 8)
	r := s.region(buf, memory.LocalWrite)
	s.receive(1, SGE{Region: r, Offset: 0, Length: 4})
	s.receive(2, SGE{Region: r, Offset: 4, Length: 4})
	s.arrives(1, send(2, []byte("next")))
	s.arrives(0, send(1, nil))
	s.completion(success(1, OpReceive, 4))
	if string(buf) != "next\x00\x00\x00\x00" {
		t.Errorf("%q", buf)
	}
}

// A connection that cannot be used begins and ends with the Terminate that says why.
//
// Proves E05.
func TestTurnedDownOverMessages(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator, func(s *setup) { s.TerminateCode = mpa.CodeNoMatchingRTR })
	s.sends(terminate(rdmap.CodeMPANoMatchingRTR))
	s.wantLLP(Finish)
}

// What Output gives are whole segments of the size that the LLP takes, no larger than any may be.
//
// Proves D20.
func TestWholeSegments(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator, func(s *setup) { s.MULPDU = 1 << 20 })
	if s.Machine.MULPDU != layout.MaxMULPDU {
		t.Errorf("MULPDU %d", s.Machine.MULPDU)
	}
	r := s.region(make([]byte, 3000), 0)
	s.Machine.SetMULPDU(1014, 1448, 65160)
	s.post(work(1, OpWrite, all(r, 2500)))
	w := func(to uint64, n int) fpdu { return write(0, to, make([]byte, n)) }
	s.sends(w(0, 1000).more(), w(1000, 1000).more(), w(2000, 500))
	s.completion(success(1, OpWrite, 2500))
	if st := s.Machine.Stats(); st.SentFPDUs != 3 || st.SentStream != 2500+3*14 {
		t.Errorf("%+v", st)
	}
}
