package engine

import (
	"bytes"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A sender is the other end of a QP on an LLP that carries whole segments, played segment by
// segment in any order.
type sender struct{ *peer }

// overMessages connects a QP of a role to a sender.
func overMessages(t *testing.T, role mpa.Role, change ...func(*setup)) *sender {
	return &sender{newPeer(t, role, append(slices.Clone(change), messages)...)}
}

// arrives hands in the segment with a number, and reports whether it was taken.
func (s *sender) arrives(at uint64, f fpdu) bool {
	s.Helper()
	return s.segment(at, f.ulpdu())
}

// sends expects the QP to send exactly these segments now.
func (s *sender) sends(want ...fpdu) {
	s.Helper()
	got := s.letters()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !bytes.Equal(got[i], want[i].ulpdu()) {
			s.Fatalf("sends % x, want %v", got, want)
		}
	}
}

// ends reports the end of the peer's half.
func (s *sender) ends(at uint64) {
	s.Machine.Ended(s.clock, at)
	s.collectOutputs()
}

// A Write that comes ahead of a Send is in place at once, and is delivered with what follows it.
//
// Proves D26, P31.
func TestWriteAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	buf := make([]byte, 20)
	r := s.region(buf, remoteAll)
	s.receive(1, SGE{Region: r, Offset: 10, Length: 10})
	s.arrives(1, write(r.STag(), 3, []byte("ahead")))
	if string(buf[3:8]) != "ahead" {
		t.Errorf("% x", buf)
	}
	s.arrives(2, send(2, nil)) // which has no receive; nobody knows as yet
	s.noCompletion()
	s.wantState(RTS)
	s.arrives(0, send(1, []byte("first")))
	s.completion(success(1, OpReceive, 5))
	s.wantCause(rdmap.CodeDDPInvalidMSNNoBuffer, false)
	if st := s.Machine.Stats().Ahead; st.Placed != 1 || st.PlacedBytes != 5 || st.Held != 1 {
		t.Errorf("%+v", st)
	}
}

// A Send ahead of its turn goes into the receive that its message will get, of the QP's own
// queue. It completes in its turn.
//
// Proves D24, D26, D27, D28, P31.
func TestSendAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator)
	buf := make([]byte, 40)
	r := s.region(buf, memory.LocalWrite)
	for id := range 4 {
		s.receive(uint64(id), SGE{Region: r, Offset: 10 * id, Length: 10})
	}
	s.arrives(0, send(1, []byte("one")).more())
	s.arrives(4, send(3, []byte("x")).at(3))
	s.arrives(3, send(3, []byte("thr")).more())
	s.arrives(2, send(2, nil))
	if string(buf[20:24]) != "thrx" {
		t.Errorf("% x", buf)
	}
	s.noCompletion()
	if s.Machine.TakeBackReceive(nil) { // all have that cookie: none of those that messages have reached
		s.wantReceives(t, 3)
	}
	s.arrives(1, send(1, []byte("!")).at(3))
	s.completion(success(0, OpReceive, 4), success(1, OpReceive, 0), success(2, OpReceive, 4))
	if string(buf[:4]) != "one!" || string(buf[20:24]) != "thrx" {
		t.Errorf("% x", buf)
	}
	if st := s.Machine.Stats().Ahead; st.Placed != 3 || st.Held != 0 {
		t.Errorf("%+v", st)
	}
}

func (s *sender) wantReceives(t *testing.T, n int) {
	t.Helper()
	if _, receives := s.Machine.Outstanding(); receives != n {
		t.Errorf("%d receives, want %d", receives, n)
	}
}

// Two segments of a Send that overlap: the bytes that were sent last stay, whichever come first.
//
// Proves D24.
func TestOverlapAhead(t *testing.T) {
	early, late := send(1, []byte("early")).more(), send(1, []byte("later")).at(1)
	for name, order := range map[string][]uint64{
		"early first": {1, 3, 0, 2}, "late first": {3, 1, 0, 2}, "late before": {3, 0, 1, 2},
		"late after": {0, 1, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := overMessages(t, mpa.RoleInitiator)
			buf := make([]byte, 10)
			r := s.region(buf, remoteAll)
			s.receive(1, all(r, 10))
			for _, at := range order {
				s.arrives(at, []fpdu{write(r.STag(), 0, nil), early, write(r.STag(), 0, nil), late}[at])
			}
			s.completion(success(1, OpReceive, 6))
			if string(buf) != "elater\x00\x00\x00\x00" {
				t.Errorf("%q", buf)
			}
			s.wantState(RTS)
		})
	}
}

// From a Shared Receive Queue nothing is taken by a message that is ahead, and a message that has
// a receive is placed ahead.
//
// Proves D26.
func TestSharedReceiveAhead(t *testing.T) {
	src := &shared{}
	s := overMessages(t, mpa.RoleInitiator, func(s *setup) { s.Source = src })
	buf := make([]byte, 20)
	r := s.region(buf, memory.LocalWrite)
	for id := range 2 {
		w := RecvWork{ID: uint64(id), SGL: listOf(SGE{Region: r, Offset: 10 * id, Length: 10})}
		src.work = append(src.work, w)
	}
	s.arrives(2, send(2, []byte("two")))
	if len(src.work) != 2 {
		t.Fatalf("%d receives left", len(src.work))
	}
	s.arrives(0, send(1, []byte("o")).more())
	s.arrives(3, send(1, []byte("ever")).at(3))
	if string(buf[:7]) != "o\x00\x00ever" || len(src.work) != 1 {
		t.Fatalf("%q, and %d receives left", buf, len(src.work))
	}
	s.arrives(1, send(1, []byte("ne")).at(1))
	s.completion(success(0, OpReceive, 3), success(1, OpReceive, 3))
	if string(buf[10:13]) != "two" {
		t.Errorf("%q", buf)
	}
	s.wantCause(rdmap.CodeDDPInvalidMSNRange, false)
}

// A Read Request is not begun before it is delivered: it sees the Write that was sent before it.
//
// Proves P40.
func TestReadRequestAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	r := s.region([]byte("old"), remoteAll)
	s.arrives(1, request(1, rdmap.ReadRequest{SinkSTag: 9, Size: 3, SrcSTag: r.STag()}))
	s.sends()
	s.arrives(0, write(r.STag(), 0, []byte("new")))
	s.sends(response(9, 0, []byte("new")))
}

// Read Responses are placed ahead of their turn, of any outstanding Read, and complete in order.
//
// Proves D26, P40, P42.
func TestResponseAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator)
	buf := make([]byte, 20)
	r := s.region(buf, memory.LocalWrite)
	s.post(work(1, OpRead, SGE{Region: r, Offset: 0, Length: 6}))
	s.post(work(2, OpRead, SGE{Region: r, Offset: 10, Length: 3}))
	s.letters()
	s.arrives(2, response(r.STag(), 10, []byte("two")))
	s.arrives(1, response(r.STag(), 3, []byte("end")))
	s.arrives(3, response(r.STag(), 16, []byte("no"))) // asked for by nobody
	if string(buf) != "\x00\x00\x00end\x00\x00\x00\x00two\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q", buf)
	}
	if st := s.Machine.Stats().Ahead; st.Placed != 2 || st.PlacedBytes != 6 || st.Held != 1 {
		t.Errorf("%+v", st)
	}
	s.noCompletion()
	s.arrives(0, response(r.STag(), 0, []byte("one")).more())
	s.completion(success(1, OpRead, 6), success(2, OpRead, 3))
	s.wantCause(rdmap.CodeUnexpectedOpcode, false)
}

// What an earlier Send with Invalidate has taken away is refused in its turn, also if it came
// when that was still there: no later message of the stream is delivered.
//
// Proves P34, D26.
func TestInvalidatedAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	buf := make([]byte, 10)
	r := s.regionOf(buf, memory.Options{Access: remoteAll, PD: testPD, Stream: testStream})
	s.receive(1)
	s.receive(2)
	s.arrives(2, send(2, nil))
	s.arrives(1, write(r.STag(), 0, []byte("late")))
	if !r.Valid() {
		t.Error("invalidated before the Send was delivered")
	}
	s.arrives(0, sendAs(rdmap.OpSendInvalidate, 1, r.STag(), nil))
	s.letters()
	s.completion(Completion{ID: 1, Op: OpReceive, Invalidated: r.STag(), HasInvalid: true}, flushed(2, OpReceive))
	s.wantCause(rdmap.CodeDDPInvalidSTag, false)
	before := bytes.Clone(buf)
	s.arrives(3, write(r.STag(), 0, []byte("gone")))
	if !bytes.Equal(buf, before) {
		t.Errorf("%q after the invalidation", buf)
	}
}

// An error ahead of its turn waits, and so does a Terminate; the first in the order of sending
// ends the connection.
//
// Proves P49, P39, P36.
func TestErrorsWaitForTheirTurn(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	r := s.region(make([]byte, 10), remoteAll)
	s.receive(1)
	bad := write(r.STag(), 9, []byte("ab"))
	s.arrives(3, terminate(rdmap.CodeLocalCatastrophic))
	s.arrives(2, bad)
	s.arrives(1, write(r.STag(), 0, []byte("ab")))
	s.wantState(RTS)
	s.arrives(0, send(1, nil))
	s.completion(success(1, OpReceive, 0))
	if f := s.wantCause(rdmap.CodeDDPBaseOrBounds, false); f.Offset != 2 ||
		!bytes.Contains([]byte(f.Error()), []byte("at segment 2")) {
		t.Errorf("%v", f)
	}
	s.sends(terminateFor(rdmap.CodeDDPBaseOrBounds, bad))
	s.wantLLP(Finish)
	s.ends(4)
	s.wantLLP()
}

// What came before is not placed again: the consumer may use the memory for something else.
//
// Proves D26.
func TestRepeated(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	buf := make([]byte, 4)
	r := s.region(buf, remoteAll)
	s.receive(1)
	for _, at := range []uint64{1, 1, 0, 0} {
		s.arrives(at, []fpdu{write(r.STag(), 0, []byte("once")), send(1, nil)}[at])
	}
	s.completion(success(1, OpReceive, 0))
	copy(buf, "mine")
	s.arrives(0, write(r.STag(), 0, []byte("once")))
	s.arrives(1, send(1, nil))
	s.noCompletion()
	if string(buf) != "mine" || s.Machine.Stats().Ahead.Repeated != 4 {
		t.Errorf("%q, %+v", buf, s.Machine.Stats().Ahead)
	}
}
