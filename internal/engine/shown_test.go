package engine

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// aware puts a QP on an MPA-aware TCP: with markers and CRCs from the peer.
func aware(s *setup) { s.MarkersReceive, s.SendFirst = true, true }

// A showing peer is one whose segments of TCP arrive in any order. What it sends is
// on the stream; what of that has arrived is shown, or told in order.
type showing struct {
	*peer
	stream []byte
	told   int   // bytes of it
	begins []int // of FPDUs
}

func overAware(t *testing.T, role mpa.Role, change ...func(*setup)) *showing {
	return &showing{peer: newPeer(t, role, append(slices.Clone(change), aware)...)}
}

// writes puts segments on the stream.
func (s *showing) writes(fs ...fpdu) {
	for _, f := range fs {
		s.begins = append(s.begins, len(s.stream))
		s.stream = s.w.Append(s.stream, f.ulpdu())
	}
}

// fpdu returns where the n-th FPDU is on the stream.
func (s *showing) fpdu(n int) (from, to int) {
	return s.begins[n], slices.Concat(s.begins, []int{len(s.stream)})[n+1]
}

// show shows bytes of the stream.
func (s *showing) show(from, to int) { s.showAs(int64(from), s.stream[from:to]) }

// showAs shows bytes that may be others than those of the stream, and clears them then.
func (s *showing) showAs(at int64, b []byte) {
	s.Helper()
	b = bytes.Clone(b)
	same := bytes.Clone(b)
	s.Machine.InputAhead(s.clock, uint64(at), b)
	if !bytes.Equal(b, same) {
		s.Fatal("bytes that were shown were written to")
	}
	clear(b)
	s.collectOutputs()
}

func (s *showing) showFPDU(n int) { s.show(s.fpdu(n)) }

// inputTo has bytes arrive in order, up to an offset.
func (s *showing) inputTo(to int) {
	s.input(s.stream[s.told:to])
	s.told = to
}

func (s *showing) wantAhead(want AheadStats) {
	s.Helper()
	if got := s.Machine.Stats().Ahead; got != want {
		s.Errorf("ahead: %+v, want %+v", got, want)
	}
}

// large is an FPDU with a marker in it, wherever it begins.
const large = 600

// A Write and a Send after missing bytes are in place as soon as they are shown, and are
// delivered in order.
//
// Proves R05, D26, D27, P31.
func TestShownIsPlaced(t *testing.T) {
	s := overAware(t, mpa.RoleResponder)
	buf := make([]byte, 3*large)
	r := s.region(buf, remoteAll)
	for id := range 2 {
		s.receive(uint64(id), SGE{Region: r, Offset: id * large, Length: large})
	}
	s.writes(send(1, nil), send(2, numbered(large)), write(r.STag(), 2*large, numbered(large)), send(3, nil))
	s.inputTo(s.begins[1])
	s.completion(success(0, OpReceive, 0))
	s.show(s.begins[2], len(s.stream))
	if !bytes.Equal(buf[2*large:], numbered(large)) || s.Machine.shown.missing.Stats().Held != 0 {
		t.Errorf("% x, %d bytes held", buf[2*large:], s.Machine.shown.missing.Stats().Held)
	}
	s.receive(2, SGE{Region: r, Offset: 0, Length: 10})
	s.noCompletion()
	s.inputTo(len(s.stream))
	s.completion(success(1, OpReceive, large), success(2, OpReceive, 0))
	s.wantAhead(AheadStats{Placed: 1, PlacedBytes: large, Held: 1, HeldBytes: 18}) // the last had no receive
	if !bytes.Equal(buf[large:2*large], numbered(large)) || s.Machine.shown.missing != nil {
		t.Errorf("% x", buf[large:2*large])
	}
	if s.Machine.ahead.segments() != 0 || s.Machine.Stats().RecvFPDUs != 4 ||
		s.Machine.Stats().RecvStream != uint64(len(s.stream)) {
		t.Errorf("%d held, %+v", s.Machine.ahead.segments(), s.Machine.Stats())
	}
}

// The payload of a Send ahead of its turn is not placed again in its turn.
//
// Proves R06.
func TestShownIsPlacedOnce(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	buf := make([]byte, large)
	r := s.region(buf, memory.LocalWrite)
	s.receive(1, all(r, large))
	s.receive(2)
	s.writes(write(1, 0, nil), send(1, numbered(large)), send(2, nil))
	s.inputTo(s.begins[1])
	s.show(s.begins[1], len(s.stream))
	clear(buf) // which no consumer may do as yet
	s.inputTo(len(s.stream))
	s.completion(success(1, OpReceive, large), success(2, OpReceive, 0))
	if !bytes.Equal(buf, make([]byte, large)) {
		t.Errorf("% x", buf)
	}
}

// What is shown and is not what comes in order changes nothing of what is delivered: other
// payload, another header, another length.
//
// Proves R06.
func TestShownAreLies(t *testing.T) {
	truth := send(1, numbered(large))
	for name, lie := range map[string]fpdu{
		"payload": send(1, bytes.Repeat([]byte{0xee}, large)),
		"header":  send(1, numbered(large)).more(),
		"length":  send(1, bytes.Repeat([]byte{0xee}, large-50)),
		"longer":  send(1, bytes.Repeat([]byte{0xee}, large+50)),
		"another": write(77, 5, numbered(large)),
	} {
		t.Run(name, func(t *testing.T) {
			s := overAware(t, mpa.RoleInitiator)
			buf := make([]byte, large)
			s.receive(1, all(s.region(buf, memory.LocalWrite), large))
			s.receive(2)
			s.writes(write(1, 0, nil))
			s.inputTo(len(s.stream))
			w := s.w
			forged := w.Append(nil, lie.ulpdu())
			at := len(s.stream)
			s.writes(truth, send(2, nil))
			s.showAs(int64(at), forged)
			s.noCompletion()
			s.writes(write(1, 0, nil), write(1, 0, nil), write(1, 0, nil)) // beyond the end of what was shown
			s.inputTo(len(s.stream))
			s.completion(success(1, OpReceive, large), success(2, OpReceive, 0))
			if s.wantState(RTS); !bytes.Equal(buf, numbered(large)) {
				t.Errorf("% x", buf)
			}
			if s.Machine.ahead.segments() > 0 || s.Machine.shown.missing != nil {
				t.Errorf("%d are held", s.Machine.ahead.segments())
			}
		})
	}
}

// Bytes that are no FPDUs, or damaged ones, are not placed, and are no error unless they
// come in order.
//
// Proves R01, Q16.
func TestShownIsDamaged(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	buf := make([]byte, large)
	r := s.region(buf, remoteAll)
	s.writes(write(1, 0, nil), write(r.STag(), 0, numbered(large)))
	s.inputTo(s.begins[1])
	damaged := bytes.Clone(s.stream[s.begins[1]:])
	damaged[100] ^= 1
	s.showAs(int64(s.begins[1]), damaged)
	s.wantState(RTS)
	s.wantAhead(AheadStats{})
	s.inputTo(len(s.stream))
	if s.wantState(RTS); !bytes.Equal(buf, numbered(large)) || s.Machine.looksAhead() {
		t.Errorf("% x", buf)
	}
	s.stream = append(s.stream, damaged...)
	s.inputTo(len(s.stream))
	s.wantCause(rdmap.CodeMPACRC, false)
}

// Nothing is looked at without markers and CRCs, once the peer's half or the connection has ended, or
// beyond the bounds.
//
// Proves R03.
func TestNotLookedAt(t *testing.T) {
	for name, change := range map[string]func(s *showing){
		"no markers":     func(s *showing) { s.Machine.MarkersReceive = false },
		"no CRC":         func(s *showing) { s.Machine.CRC = false },
		"FIN":            func(s *showing) { s.fin() },
		"Terminate":      func(s *showing) { s.modify(Terminate) },
		"too far":        func(s *showing) { s.Machine.Ahead.Bytes = 2*large - 1 },
		"too many FPDUs": func(s *showing) { s.Machine.Ahead.Segments = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := overAware(t, mpa.RoleInitiator, func(s *setup) { s.HalfClose = true })
			buf := make([]byte, 2*large)
			r := s.region(buf, remoteAll)
			s.writes(write(r.STag(), 0, numbered(large)), write(r.STag(), large, numbered(large)))
			change(s)
			s.showFPDU(1)
			if st := s.Machine.Stats().Ahead; st.Placed+st.Held != 0 ||
				!bytes.Equal(buf, make([]byte, 2*large)) || st.Dropped > 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A flood of bytes far ahead, of FPDUs and of none: what is kept of it is bounded, and goes with the gap.
//
// Proves R07, Z31.
func TestFloodOfShown(t *testing.T) {
	const segments, bytes = 20, 8 * large
	s := overAware(t, mpa.RoleInitiator, func(s *setup) { s.Params.Ahead = Ahead{Segments: segments, Bytes: bytes} })
	r := s.region(make([]byte, large), remoteAll)
	for range 12 {
		s.writes(write(r.STag(), 0, numbered(large)))
	}
	for range 500 {
		s.writes(write(1, 0, nil))
	}
	for at := len(s.stream) - 7; at > 0; at -= 7 { // backwards, in pieces that are no FPDU
		s.show(at, at+7)
		if n := s.shownHeld(); n > bytes || s.Machine.ahead.segments() > segments {
			t.Fatalf("%d bytes and %d FPDUs are held", n, s.Machine.ahead.segments())
		}
	}
	for n := range s.begins {
		s.showFPDU(n)
	}
	s.showAs(1<<62, numbered(large))
	s.showAs(-1, numbered(large)) // beyond the last byte that there can be
	if s.Machine.ahead.segments() > segments || s.Machine.Stats().Ahead.Dropped == 0 {
		t.Errorf("%d FPDUs are held, %+v", s.Machine.ahead.segments(), s.Machine.Stats().Ahead)
	}
	s.inputTo(len(s.stream))
	if s.wantState(RTS); s.Machine.ahead.segments() > 0 || s.Machine.shown.missing != nil ||
		s.Machine.Stats().RecvFPDUs != 512 {
		t.Errorf("%d FPDUs are held, %d received", s.Machine.ahead.segments(), s.Machine.Stats().RecvFPDUs)
	}
}

func (s *showing) shownHeld() int {
	if s.Machine.shown == nil || s.Machine.shown.missing == nil {
		return 0
	}
	return s.Machine.shown.missing.Stats().Held
}

// While bytes are missing a close holds its FIN back: more is on its way.
//
// Proves D30.
func TestQuietWhileMissing(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	s.writes(write(1, 0, nil), write(1, 0, nil))
	(&sender{s.peer}).closeFar()
	s.show(s.begins[1], len(s.stream))
	s.advance(rtt + activeWait + time.Millisecond)
	s.wantLLP()
	s.inputTo(len(s.stream))
	s.advance(rtt + activeWait)
	s.wantLLP(Finish)
}
