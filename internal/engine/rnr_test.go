package engine

import (
	"bytes"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// patient has a QP keep so much that finds no receive.
func patient(n, messages int) func(*setup) {
	return func(s *setup) { s.RNR = RNR{Bytes: n, Messages: messages} }
}

// receiveLate posts a receive for what waits.
func (p *peer) receiveLate(id uint64, sgl ...SGE) {
	p.Helper()
	p.receive(id, sgl...)
	p.Machine.Ready(p.clock)
	p.collectOutputs()
}

// Sends that find no receive wait for one, in their order and whatever the order of their segments. What the peer asks
// for after them waits after them: a Write, a Read, an Atomic Operation. What answers our own requests passes by.
//
// Proves D26, D27, P40.
func TestRNR(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	buf := numbered(40)
	r := p.region(buf, remoteAll|memory.RemoteAtomic)
	add := rdmap.FetchAdd(1, 0)
	add.STag, add.TO = r.STag(), 16
	p.post(work(8, OpRead, SGE{Region: r, Offset: 36, Length: 1}))
	p.post(SendWork{ID: 9, Op: OpFetchAdd, RemoteSTag: 1})
	p.send(send(1, []byte("one")), send(2, []byte("t")).more(), send(2, []byte("o")).at(2).more(),
		send(2, []byte("w")).at(1).more(), send(2, nil).at(3))
	p.want(request(1, rdmap.ReadRequest{SinkSTag: r.STag(), SinkTO: 36, Size: 1}))
	p.next()
	p.send(write(r.STag(), 30, []byte("later")), request(1, readOf(r.STag(), 3)), atomicRequest(2, add))
	p.send(response(r.STag(), 36, []byte("N")), atomicResponse(1, 1, 5))
	p.completion(success(8, OpRead, 1), Completion{ID: 9, Op: OpFetchAdd, Length: 8, Original: 5})
	p.wantNothing()
	p.receiveLate(1, SGE{Region: r, Offset: 0, Length: 10})
	p.completion(success(1, OpReceive, 3))
	p.receiveLate(2, SGE{Region: r, Offset: 10, Length: 10})
	p.completion(success(2, OpReceive, 3))
	if want := append(append([]byte("one"), numbered(40)[3:10]...), "two"...); !bytes.Equal(buf[:13], want) ||
		string(buf[30:35]) != "later" {
		t.Errorf("%q", buf)
	}
	p.want(response(readOf(0, 0).SinkSTag, readOf(0, 0).SinkTO, []byte("one")))
	if f, ok := p.next(); !ok || rdmap.OpcodeOf(&f.H) != rdmap.OpAtomicResponse {
		t.Errorf("%v", f.H)
	}
	p.send(send(3, nil))
	p.noCompletion()
	p.receiveLate(3)
	p.completion(success(3, OpReceive, 0))
	if p.Machine.ReceiverNotReady() {
		t.Error("something waits")
	}
	p.receive(4, SGE{Region: r, Offset: 0, Length: 10})
	p.send(send(4, []byte("four")))
	p.completion(success(4, OpReceive, 4))
	p.wantState(RTS)
}

// A Read that was asked for after a Send that waits has what the Send brings, and what Writes after it have not is not
// there either.
//
// Proves P40.
func TestReadBehindRNR(t *testing.T) {
	for _, first := range []fpdu{send(1, []byte("new")), immediate(1, 7)} {
		p := responder(t, patient(1<<20, 100))
		buf := []byte("old")
		r := p.region(buf, remoteAll)
		p.send(first, write(r.STag(), 0, []byte("N")), request(1, readOf(r.STag(), 3)))
		p.wantNothing()
		if string(buf) != "old" {
			t.Fatalf("%q", buf)
		}
		p.receiveLate(1, SGE{Region: r, Offset: 0, Length: 3})
		p.want(response(readOf(0, 0).SinkSTag, readOf(0, 0).SinkTO, buf))
		if buf[0] != 'N' || len(first.Payload) == 3 && string(buf) != "New" {
			t.Errorf("%q", buf)
		}
	}
}

// What needs no receive waits for none: only what comes after a Send that waits does.
func TestReadyWithoutReceives(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	r := p.region(numbered(3), memory.RemoteRead)
	p.send(write(0, 0, nil), request(1, readOf(r.STag(), 3)))
	p.want(response(readOf(0, 0).SinkSTag, readOf(0, 0).SinkTO, numbered(3)))
}

// Immediate Data wait as Sends do, with the bytes of the Write in front of them: those of another after them do not
// count.
func TestRNRImmediate(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	r := p.region(make([]byte, 40), remoteAll)
	p.send(write(r.STag(), 0, numbered(10)), immediate(1, 7), write(r.STag(), 0, numbered(20)),
		send(2, nil), immediate(3, 8))
	p.send(write(r.STag(), 0, numbered(5)), immediate(4, 9))
	for i, want := range []Completion{
		{HasImmediate: true, Immediate: 7, Written: 10}, {}, {HasImmediate: true, Immediate: 8},
		{HasImmediate: true, Immediate: 9, Written: 5},
	} {
		p.noCompletion()
		p.receiveLate(uint64(i))
		want.ID, want.Op = uint64(i), OpReceive
		p.completion(want)
	}
}

// What waited is judged when it has its receive, as it would have been before.
func TestRNRErrors(t *testing.T) {
	long, skipped := send(1, numbered(11)), send(3, nil)
	for _, tt := range []struct {
		f      []fpdu
		status Status
		code   rdmap.Code
	}{
		{[]fpdu{long}, StatusLocalLength, rdmap.CodeDDPMessageTooLong},
		{[]fpdu{send(1, nil), skipped}, StatusSuccess, rdmap.CodeDDPInvalidMSNRange},
	} {
		p := responder(t, patient(1<<20, 100))
		r := p.region(make([]byte, 10), memory.LocalWrite)
		p.send(tt.f...)
		p.wantState(RTS)
		p.receiveLate(1, all(r, 10))
		p.completion(failed(1, OpReceive, tt.status))
		p.wantTerminate(terminateFor(tt.code, tt.f[len(tt.f)-1]))
		p.wantCause(tt.code, false)
	}
	p := responder(t, patient(1<<20, 100))
	p.send(skipped) // which no receive would make right
	p.wantTerminate(terminateFor(rdmap.CodeDDPInvalidMSNRange, skipped))
}

// Nothing more is to be received when as much waits as may, in bytes or messages; what comes nevertheless waits too.
func TestRNRBound(t *testing.T) {
	for _, bound := range []RNR{{Bytes: 2 * (AheadCost + 18 + 10), Messages: 100}, {Bytes: 1 << 20, Messages: 2}} {
		p := responder(t, patient(bound.Bytes, bound.Messages))
		p.send(send(1, numbered(10)), send(2, numbered(9)).more())
		if p.Machine.HoldsBack() {
			t.Fatal("too early")
		}
		p.send(send(2, numbered(1)).at(9), send(3, nil))
		for id := range uint64(3) {
			if p.Machine.HoldsBack() != (id < 2) {
				t.Fatalf("%d: %t", id, p.Machine.HoldsBack())
			}
			p.receiveLate(id, all(p.region(make([]byte, 10), memory.LocalWrite), 10))
		}
		p.completion(success(0, OpReceive, 10), success(1, OpReceive, 10), success(2, OpReceive, 0))
	}
	for more, held := range []bool{true, false} { // to the byte
		p := responder(t, patient(AheadCost+18+10+more, 100))
		if p.send(send(1, numbered(10))); p.Machine.HoldsBack() != held {
			t.Errorf("with a bound of %d bytes more: %t", more, p.Machine.HoldsBack())
		}
	}
}

// From a Shared Receive Queue waits what others may still post for. Who holds his share of it does not wait.
func TestRNRShared(t *testing.T) {
	src := &shared{}
	with := func(s *setup) { s.Source = src }
	p := responder(t, patient(1<<20, 100), with)
	p.send(send(1, nil))
	src.work = append(src.work, RecvWork{ID: 5})
	p.Machine.Ready(p.clock)
	p.collectOutputs()
	p.completion(success(5, OpReceive, 0))
	src.shut = true
	p.send(send(2, nil))
	p.wantTerminate(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(2, nil)))
}

// Ahead of order: the payload of a Write may be in place before a Send in front of it has its receive; the Write has
// its turn after that, and is refused then if it may not be. A Send waits after it.
func TestRNRPlacedAhead(t *testing.T) {
	for name, revoke := range map[string]bool{"valid": false, "revoked": true} {
		s := overMessages(t, mpa.RoleInitiator, patient(1<<20, 100))
		buf := make([]byte, 100)
		r := s.region(buf, remoteAll)
		s.arrives(2, write(r.STag(), 0, numbered(50)))
		s.arrives(0, send(1, nil))
		s.arrives(1, write(r.STag(), 60, numbered(10)))
		s.arrives(3, immediate(2, 7))
		if buf[0] != 1 || buf[60] != 0 || !s.Machine.ReceiverNotReady() {
			t.Fatalf("%s: % x", name, buf)
		}
		if revoke {
			s.table.Revoke(r)
		}
		s.receive(9)
		s.receiveLate(1)
		s.completion(success(9, OpReceive, 0))
		if revoke {
			s.wantState(Terminate)
			continue
		}
		s.completion(Completion{ID: 1, Op: OpReceive, HasImmediate: true, Immediate: 7, Written: 50})
		if !bytes.Equal(buf[:50], numbered(50)) || buf[60] != 1 {
			t.Errorf("% x", buf)
		}
	}
}

// Ahead of order: what has its turn and no receive waits, and a segment is placed ahead only if its message has a
// receive.
func TestRNRAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator, patient(1<<20, 2), func(s *setup) { s.GapTimeout = time.Second })
	buf := make([]byte, 40)
	r := s.region(buf, memory.LocalWrite)
	s.arrives(0, send(1, []byte("o")).more())
	s.arrives(3, send(2, []byte("o")).at(2))
	s.arrives(1, send(1, []byte("ne")).at(1))
	s.receiveLate(1, SGE{Region: r, Offset: 0, Length: 10})
	s.completion(success(1, OpReceive, 3))
	s.receiveLate(2, SGE{Region: r, Offset: 10, Length: 10})
	s.arrives(2, send(2, []byte("tw")).more())
	s.completion(success(2, OpReceive, 3))
	if !bytes.Equal(buf[:13], []byte("one\x00\x00\x00\x00\x00\x00\x00two")) {
		t.Errorf("%q", buf)
	}
	s.arrives(4, send(3, nil))
	s.arrives(5, send(4, nil))
	s.arrives(7, send(6, nil))
	s.advance(time.Minute) // as nobody receives, no segment is late
	s.receiveLate(3)
	s.receiveLate(4)
	s.completion(success(3, OpReceive, 0), success(4, OpReceive, 0))
	s.advance(time.Second)
	s.wantState(Terminate)
}
