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
func patient(octets, messages int) func(*setup) {
	return func(s *setup) { s.Unready = Unready{Octets: octets, Messages: messages} }
}

// receiveLate posts a receive for what waits.
func (p *peer) receiveLate(id uint64, sgl ...SGE) {
	p.Helper()
	p.receive(id, sgl...)
	p.Ready(p.clock)
	p.settle()
}

// Sends that find no receive wait for one, in their order and whatever the order of their segments. What is behind them goes on: a Write is
// placed, a Read answered, and a response completes a Read.
func TestUnready(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	buf := make([]byte, 40)
	r := p.region(buf, remoteAll)
	p.send(send(1, []byte("one")), send(2, []byte("t")).more(), send(2, []byte("o")).at(2).more(), send(2, []byte("w")).at(1).more())
	p.send(write(r.STag(), 30, []byte("written")), request(1, readOf(r.STag(), 4)))
	p.want(response(readOf(0, 0).SinkSTag, readOf(0, 0).SinkTO, make([]byte, 4)))
	p.post(work(9, OpRead, SGE{r, 36, 1}))
	if f, ok := p.next(); !ok || rdmap.OpcodeOf(&f.H) != rdmap.OpReadRequest {
		t.Fatalf("%v", f.H)
	}
	p.send(response(r.STag(), 36, []byte("N")))
	p.completion(success(9, OpRead, 1))
	if string(buf[30:37]) != "writteN" {
		t.Errorf("%q", buf)
	}
	p.receiveLate(1, SGE{r, 0, 10})
	p.completion(success(1, OpReceive, 3))
	p.receiveLate(2, SGE{r, 10, 10})
	if string(buf[:13]) != "one\x00\x00\x00\x00\x00\x00\x00two" {
		t.Errorf("%q", buf)
	}
	p.noCompletion()
	if p.Unready() {
		t.Error("something waits")
	}
	p.send(send(2, nil).at(3), send(3, nil))
	p.completion(success(2, OpReceive, 3))
	p.receiveLate(3)
	p.completion(success(3, OpReceive, 0))
	p.receive(4, SGE{r, 0, 10})
	p.send(send(4, []byte("four")))
	p.completion(success(4, OpReceive, 4))
	p.wantState(RTS)
}

// Immediate Data wait as Sends do, with the octets of the Write in front of them: those of another behind them do not count.
func TestUnreadyImmediate(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	r := p.region(make([]byte, 40), remoteAll)
	p.send(write(r.STag(), 0, numbered(10)), immediate(1, 7), write(r.STag(), 0, numbered(20)), send(2, nil), immediate(3, 8))
	p.send(write(r.STag(), 0, numbered(5)), immediate(4, 9))
	for i, want := range []Completion{
		{HasImmediate: true, Immediate: 7, Written: 10}, {}, {HasImmediate: true, Immediate: 8}, {HasImmediate: true, Immediate: 9, Written: 5},
	} {
		p.noCompletion()
		p.receiveLate(uint64(i))
		want.ID, want.Op = uint64(i), OpReceive
		p.completion(want)
	}
}

// What waited is judged when it has its receive, as it would have been before.
func TestUnreadyErrors(t *testing.T) {
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

// Nothing more is to be received when as much waits as may, in octets or messages; what comes nevertheless waits too.
func TestUnreadyBound(t *testing.T) {
	for _, bound := range []Unready{{Octets: 2 * (AheadCost + 18 + 10), Messages: 100}, {Octets: 1 << 20, Messages: 2}} {
		p := responder(t, patient(bound.Octets, bound.Messages))
		p.send(send(1, numbered(10)), send(2, numbered(9)).more())
		if p.HoldsBack() {
			t.Fatal("too early")
		}
		p.send(send(2, numbered(1)).at(9), send(3, nil))
		for id := range uint64(3) {
			if p.HoldsBack() != (id < 2) {
				t.Fatalf("%d: %t", id, p.HoldsBack())
			}
			p.receiveLate(id, all(p.region(make([]byte, 10), memory.LocalWrite), 10))
		}
		p.completion(success(0, OpReceive, 10), success(1, OpReceive, 10), success(2, OpReceive, 0))
	}
}

// The end of the peer's half waits for what came before it, and so do receives that wait in vain.
func TestUnreadyEnd(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	p.send(send(1, nil), send(2, nil))
	p.fin()
	p.wantNotices()
	p.receiveLate(1)
	p.completion(success(1, OpReceive, 0))
	p.wantState(RTS)
	p.receiveLate(2)
	p.completion(success(2, OpReceive, 0))
	p.wantOver(Drop)
}

// wantOver expects the connection to have ended in order.
func (p *peer) wantOver(how ...LLP) {
	p.Helper()
	p.wantNothing()
	p.wantLLP(how...)
	p.wantState(Idle)
}

// A consumer that closes wants nothing of what waits, nor of what comes then and would wait. The close goes on as any other.
func TestUnreadyClose(t *testing.T) {
	for first, how := range map[bool][]LLP{true: {Drop}, false: {Finish, Drop}} {
		p := responder(t, patient(1<<20, 100))
		p.send(send(1, []byte("one")).more())
		if first {
			p.send(send(1, nil).at(3))
			p.fin()
		}
		p.closeOrderly()
		if !first {
			p.send(send(1, nil).at(3), send(2, []byte("two")))
			p.fin()
		}
		p.wantOver(how...)
	}
	p := responder(t, patient(1<<20, 100))
	p.send(write(0, 0, nil))
	p.closeOrderly()
	p.send(send(1, nil), immediate(2, 0))
	p.fin()
	p.wantOver(Finish, Drop)
}

// Whatever ends the connection ends what waits: a Terminate of the peer's, an abort. The next has nothing of it.
func TestUnreadyLost(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	p.send(send(1, nil), send(2, nil))
	p.fin()
	p.modify(Error)
	p.wantLLP(Reset)
	if p.Unready() || p.HoldsBack() {
		t.Error("something waits")
	}
	p.modify(Idle)
	p = responder(t, patient(1<<20, 100))
	p.send(send(1, nil), terminate(0x0207))
	p.wantCause(0x0207, true)
	if p.Unready() {
		t.Error("something waits")
	}
}

// From a Shared Receive Queue waits what others may still post for. Who holds his share of it does not wait.
func TestUnreadyShared(t *testing.T) {
	src := &shared{}
	with := func(s *setup) { s.Source = src }
	p := responder(t, patient(1<<20, 100), with)
	p.send(send(1, nil))
	src.work = append(src.work, RecvWork{ID: 5})
	p.Ready(p.clock)
	p.settle()
	p.completion(success(5, OpReceive, 0))
	src.shut = true
	p.send(send(2, nil))
	p.wantTerminate(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(2, nil)))
}

// Ahead of order: what has its turn and no receive waits, and a segment is placed ahead only if its message has a receive.
func TestUnreadyAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator, patient(1<<20, 2), func(s *setup) { s.GapTimeout = time.Second })
	buf := make([]byte, 40)
	r := s.region(buf, memory.LocalWrite)
	s.arrives(0, send(1, []byte("o")).more())
	s.arrives(3, send(2, []byte("o")).at(2))
	s.arrives(1, send(1, []byte("ne")).at(1))
	s.receiveLate(1, SGE{r, 0, 10})
	s.completion(success(1, OpReceive, 3))
	s.receiveLate(2, SGE{r, 10, 10})
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
