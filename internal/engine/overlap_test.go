package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Segments of a Send that overlap are placed, and the bytes that were sent last stay. The receive completes with the
// last segment and only if every byte has come, however many have.
//
// Proves D24, D27, D28, Z12.
func TestSendOverlaps(t *testing.T) {
	p := responder(t)
	buf := []byte("----------------")
	r := p.region(buf, memory.LocalWrite)
	p.receive(1, SGE{Region: r, Offset: 0, Length: 5}, SGE{Region: r, Offset: 8, Length: 8})
	p.send(send(1, []byte("AAAAAAAA")).more(), send(1, []byte("bbb")).at(2).more(), send(1, []byte("cc")).at(4).more())
	p.noCompletion()
	p.send(send(1, []byte("ddd")).at(7))
	p.completion(success(1, OpReceive, 10))
	if want := "AAbbc---cAddd---"; string(buf) != want {
		t.Errorf("%q, want %q", buf, want)
	}
	if p.wantState(RTS); p.Machine.Stats().Odd.Disorder != 3 {
		t.Errorf("%+v", p.Machine.Stats().Odd)
	}
}

// A Read Response comes in any order of TO, overlaps, and ends with an empty segment.
//
// Proves P28, D24, D27, Z30.
func TestResponseOverlaps(t *testing.T) {
	for name, c := range map[string]struct {
		segments func(rd *reader) []fpdu
		want     string
		odd      uint64
	}{
		"reversed": {func(rd *reader) []fpdu {
			return []fpdu{rd.answer(12, "efgh").more(), rd.answer(10, "cd").more(), rd.answer(8, "ab")}
		}, "abcdefgh", 3},
		"overlapping": {func(rd *reader) []fpdu {
			return []fpdu{rd.answer(8, "AAAAAA").more(), rd.answer(10, "bb").more(),
				rd.answer(9, "cc").more(), rd.answer(13, "ddd")}
		}, "AccbAddd", 3},
		"empty at the end": {func(rd *reader) []fpdu {
			return []fpdu{rd.answer(8, "abcd").more(), rd.answer(12, "efgh").more(), response(99, 1<<63, nil)}
		}, "abcdefgh", 0},
	} {
		t.Run(name, func(t *testing.T) {
			rd := newReader(t)
			rd.post(rd.read(1, 8, 8))
			rd.post(rd.read(2, 24, 8))
			rd.want(rd.asked(1, 8, 8), rd.asked(2, 24, 8))
			fs := c.segments(rd)
			rd.send(fs[:len(fs)-1]...)
			rd.noCompletion()
			rd.send(fs[len(fs)-1])
			rd.completion(success(1, OpRead, 8))
			rd.send(rd.answer(24, "12345678"))
			rd.completion(success(2, OpRead, 8))
			if got := string(rd.buf[8:16]); got != c.want || rd.Machine.Stats().Odd.Disorder != c.odd {
				t.Errorf("%q, %+v", got, rd.Machine.Stats().Odd)
			}
		})
	}
}

// A Response is not complete while a byte of it is missing, whatever comes with the L bit and however often the
// others come: what was in the sink before is not told as read.
//
// Proves P28, D27, Z12.
func TestResponseWithGap(t *testing.T) {
	rd := newReader(t)
	rd.post(rd.read(1, 8, 8))
	rd.want(rd.asked(1, 8, 8))
	rd.send(rd.answer(8, "abc").more(), rd.answer(8, "abc").more(), rd.answer(12, "efgh").more())
	last := response(0, 0, nil)
	rd.send(last)
	rd.wantTerminate(terminateFor(rdmap.CodeCatastrophicStream, last))
	rd.completion(flushed(1, OpRead))
}

// Immediate Data are a message of their own: they do not end a Send of which a part has come.
//
// Proves X03, D27.
func TestImmediateWithinSend(t *testing.T) {
	for _, n := range []int{0, 4, 8, 20} {
		p := responder(t)
		p.receive(1, all(p.region(make([]byte, 20), memory.LocalWrite), 20))
		bad := immediate(1, 7)
		p.send(send(1, numbered(n)).more(), bad)
		p.wantTerminate(terminateFor(rdmap.CodeDDPInvalidMO, bad))
		p.completion(flushed(1, OpReceive))
	}
}

// A segment that has its turn does not undo what was sent after it and is in place already, also if it goes on where
// the one before it has ended.
//
// Proves D24.
func TestNextOverlapsAhead(t *testing.T) {
	s := overAware(t, mpa.RoleInitiator)
	buf := make([]byte, 4*large)
	s.receive(1, all(s.region(buf, memory.LocalWrite), len(buf)))
	fill := func(b byte) []byte { return bytes.Repeat([]byte{b}, large) }
	s.writes(write(1, 0, nil), send(1, fill('a')).more(), send(1, fill('b')).at(large).more(),
		send(1, fill('c')).at(large+9).more(), send(1, fill('d')).at(2*large))
	s.inputTo(s.begins[1])
	s.showFPDU(3)
	s.showFPDU(4)
	s.wantPlaced(1) // the other overlaps it
	s.inputTo(len(s.stream))
	s.completion(success(1, OpReceive, 3*large))
	want := append(append(append(fill('a'), fill('b')[:9]...), fill('c')[:large-9]...), fill('d')...)
	if s.wantState(RTS); !bytes.Equal(buf[:3*large], want) {
		t.Errorf("%q", buf[:3*large])
	}
}

// What was placed ahead for one Read is not taken for the response of a later one to the same sink, which the
// consumer has used in between: that was not asked for when it was sent.
//
// Proves P28, Z12.
func TestResponseBeforeItsRead(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator)
	buf := make([]byte, 8)
	r := s.region(buf, memory.LocalWrite)
	s.post(work(1, OpRead, all(r, 8)))
	s.letters()
	s.arrives(2, response(r.STag(), 0, []byte("conceals")))
	s.arrives(0, response(r.STag(), 0, []byte("answered")))
	s.completion(success(1, OpRead, 8))
	copy(buf, "my own b")
	s.post(work(2, OpRead, all(r, 8)))
	s.letters()
	s.arrives(1, write(0, 0, nil))
	s.letters()
	s.completion(flushed(2, OpRead))
	s.wantCause(rdmap.CodeUnexpectedOpcode, false)
}

// What was placed ahead is overwritten by what was sent after it, once it has had its turn.
//
// Proves D24.
func TestOverlapAfterTurn(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator)
	buf := make([]byte, 16)
	r := s.region(buf, memory.LocalWrite)
	s.receive(1, SGE{Region: r, Offset: 0, Length: 8})
	s.post(work(2, OpRead, SGE{Region: r, Offset: 8, Length: 8}))
	s.letters()
	s.arrives(0, write(0, 0, nil))
	s.arrives(2, send(1, []byte("bbbb")).at(4).more())
	s.arrives(4, response(r.STag(), 12, []byte("BBBB")).more())
	s.arrives(1, send(1, []byte("aaaa")).more())
	s.arrives(3, response(r.STag(), 8, []byte("AAAA")).more())
	s.arrives(5, send(1, []byte("cccc")).at(4))
	s.arrives(6, response(r.STag(), 11, []byte("CCC")))
	s.completion(success(1, OpReceive, 8), success(2, OpRead, 8))
	if string(buf) != "aaaaccccAAACCCBB" {
		t.Errorf("%q", buf)
	}
}

// What could not be placed ahead is judged in its turn: nothing is taken for placed.
//
// Proves D24, Z12, Z13.
func TestNotPlacedAheadIsPlacedLater(t *testing.T) {
	for _, read := range []bool{false, true} {
		s := overMessages(t, mpa.RoleInitiator)
		r := s.region(make([]byte, 8), memory.LocalWrite)
		ahead, want := send(1, numbered(8)), failed(1, OpReceive, StatusLocalProtection)
		if read {
			s.post(work(1, OpRead, all(r, 8)))
			s.letters()
			ahead, want = response(r.STag(), 0, numbered(8)), failed(1, OpRead, StatusLocalProtection)
		} else {
			s.receive(1, all(r, 8))
		}
		s.arrives(0, write(0, 0, nil))
		s.table.Revoke(r)
		s.arrives(2, ahead)
		s.arrives(1, write(0, 0, nil))
		s.letters()
		s.completion(want)
	}
}
