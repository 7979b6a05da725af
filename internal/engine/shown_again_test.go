package engine

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// An FPDU without a marker in it is found after the one in front of it, whose first bytes
// come in order and whose others were shown: only the later one is ahead of its turn then.
//
// Proves D26.
func TestShownBecomesWhole(t *testing.T) {
	s := overAware(t, mpa.RoleResponder)
	buf := make([]byte, large+5)
	r := s.region(buf, remoteAll)
	s.writes(write(1, 0, nil), write(r.STag(), 0, numbered(large)), write(r.STag(), large, numbered(5)))
	middle := s.begins[1] + 50
	s.show(middle, len(s.stream))
	s.wantPlaced(0)
	s.inputTo(middle)
	s.wantPlaced(1)
	if want := append(make([]byte, large), numbered(5)...); !bytes.Equal(buf, want) {
		t.Errorf("% x", buf)
	}
	s.inputTo(len(s.stream))
	if s.wantState(RTS); !bytes.Equal(buf[:large], numbered(large)) || s.Machine.Stats().RecvFPDUs != 3 {
		t.Errorf("%d FPDUs, % x", s.Machine.Stats().RecvFPDUs, buf)
	}
}

// wantPlaced expects so many FPDUs to have been placed before their turn.
func (s *showing) wantPlaced(n uint64) {
	s.Helper()
	if got := s.Machine.Stats().Ahead.Placed; got != n {
		s.Errorf("%d FPDUs were placed ahead, want %d", got, n)
	}
}

// What was shown is remembered until all of it has come in order, and not only until anything has.
//
// Proves R06.
func TestShownIsRemembered(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	buf := make([]byte, large)
	s.receive(1, all(s.region(buf, memory.LocalWrite), large))
	other := s.region(make([]byte, 100), remoteAll)
	s.writes(write(1, 0, nil), write(other.STag(), 0, numbered(100)), write(1, 0, nil), send(1, numbered(large)))
	s.inputTo(s.begins[1])
	s.showFPDU(3)
	s.inputTo(s.begins[2])
	clear(buf) // which no consumer may do as yet
	s.inputTo(len(s.stream))
	s.completion(success(1, OpReceive, large))
	if !bytes.Equal(buf, make([]byte, large)) {
		t.Errorf("placed again: % x", buf)
	}
}

// A note of an FPDU makes room for another when the FPDU has its turn, though more was shown
// that has not come.
//
// Proves R07.
func TestShownMakesRoom(t *testing.T) {
	s := overAware(t, mpa.RoleResponder, func(s *setup) { s.Params.Ahead = Ahead{Segments: 1} })
	r := s.region(make([]byte, large), remoteAll)
	for range 4 {
		s.writes(write(r.STag(), 0, numbered(large)))
	}
	s.showFPDU(1)
	s.showFPDU(3) // for which there is no room
	s.wantPlaced(1)
	s.inputTo(s.begins[2])
	s.writes(write(r.STag(), 0, numbered(large)))
	s.showFPDU(4)
	s.wantPlaced(2)
	s.inputTo(len(s.stream))
	s.wantState(RTS)
}

// A note of an FPDU that is not on the stream is gone when all has come that was shown.
//
// Proves R06, R07.
func TestShownBetweenFPDUs(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	buf := make([]byte, large)
	s.receive(1, all(s.region(buf, memory.LocalWrite), large))
	s.writes(write(1, 0, nil))
	s.inputTo(len(s.stream))
	w := s.w
	forged := w.Append(nil, write(1, 0, nil).ulpdu())
	forged = w.Append(forged, send(1, bytes.Repeat([]byte{0xee}, large)).ulpdu())
	at := len(s.stream)
	s.writes(send(1, numbered(large)), write(1, 0, nil), write(1, 0, nil))
	s.showAs(int64(at), forged)
	s.wantPlaced(2)
	s.inputTo(len(s.stream))
	s.completion(success(1, OpReceive, large))
	if s.wantState(RTS); !bytes.Equal(buf, numbered(large)) || s.Machine.ahead.segments() > 0 {
		t.Errorf("%d are held, % x", s.Machine.ahead.segments(), buf)
	}
}

// endsIn changes the last four bytes of payload of an FPDU that has no pad, so that its CRC is another FPDU's.
func endsIn(f, other []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	end := len(f) - 8
	register := ^binary.LittleEndian.Uint32(other[len(other)-4:])
	for range 4 { // backwards through bytes of zero
		i := uint32(0)
		for table[i]>>24 != register>>24 {
			i++
		}
		register = (register^table[i])<<8 | i
	}
	binary.LittleEndian.PutUint32(f[end:], register^^crc32.Checksum(f[:end], table))
	copy(f[end+4:], other[len(other)-4:])
}

// An FPDU that was shown with the CRC of the one on the stream is another nevertheless, if its
// length or its header is another.
//
// Proves R06.
func TestShownHasSameCRC(t *testing.T) {
	for name, lie := range map[string]fpdu{
		"length": send(1, bytes.Repeat([]byte{0xee}, large-4)),
		"header": send(1, bytes.Repeat([]byte{0xee}, large)).more(),
	} {
		t.Run(name, func(t *testing.T) {
			s := overAware(t, mpa.RoleInitiator)
			buf := make([]byte, large)
			s.receive(1, all(s.region(buf, memory.LocalWrite), large))
			s.writes(write(1, 0, nil))
			s.inputTo(len(s.stream))
			w := s.w
			forged := w.Append(nil, lie.ulpdu())
			s.writes(send(1, numbered(large)))
			endsIn(forged, s.stream)
			s.showAs(int64(s.begins[1]), forged)
			s.wantPlaced(1)
			s.inputTo(len(s.stream))
			s.completion(success(1, OpReceive, large))
			if s.wantState(RTS); !bytes.Equal(buf, numbered(large)) {
				t.Errorf("% x", buf)
			}
		})
	}
}

// Bytes are looked at up to the bound, and not beyond it.
//
// Proves R07.
func TestShownUpToBound(t *testing.T) {
	for beyond, want := range []AheadStats{{Placed: 1, PlacedBytes: large}, {Dropped: 1}} {
		s := overAware(t, mpa.RoleInitiator)
		r := s.region(make([]byte, large), remoteAll)
		s.writes(write(1, 0, nil), write(r.STag(), 0, numbered(large)))
		s.Machine.Ahead.Bytes = len(s.stream) - beyond
		s.showFPDU(1)
		s.wantAhead(want)
	}
}

// Bytes that come in more pieces than are kept apart are counted, and come in order.
//
// Proves R07, Z31.
func TestShownInManyPieces(t *testing.T) {
	const pieces = 1024
	s := overAware(t, mpa.RoleResponder)
	r := s.region(make([]byte, 8*large), remoteAll)
	s.writes(write(r.STag(), 0, numbered(8*large)))
	for i := range pieces {
		s.show(4*i+100, 4*i+101)
	}
	s.wantAhead(AheadStats{MostBytes: pieces})
	s.show(4*pieces+100, 4*pieces+101)
	if st := s.Machine.Stats().Ahead; st.Dropped != 1 {
		t.Errorf("%+v", st)
	}
	s.inputTo(len(s.stream))
	if s.wantState(RTS); s.Machine.Stats().RecvFPDUs != 1 {
		t.Errorf("%d FPDUs", s.Machine.Stats().RecvFPDUs)
	}
}

// While bytes are missing a close waits for them for half of its time, and for no longer.
//
// Proves D30.
func TestMissingIsNotAwaited(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	s.writes(write(1, 0, nil), write(1, 0, nil))
	(&sender{s.peer}).closeFar()
	s.show(s.begins[1], len(s.stream))
	s.advance(closeTime/2 - time.Millisecond)
	s.wantLLP()
	s.advance(time.Millisecond)
	s.wantLLP(Finish)
}
