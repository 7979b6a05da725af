package engine

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// The end of the peer's half waits for what came before it, and so do receives that wait in vain.
func TestRNREnd(t *testing.T) {
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

// A consumer that closes posts no receives for what waits: the peer, which takes it for completed, learns so, and so
// does the consumer. A Send that comes then and finds no receive ends the connection as it always does.
//
// Proves D37.
func TestRNRClose(t *testing.T) {
	one := send(1, []byte("one"))
	for name, closes := range map[string]func(p *peer){
		"in order":      func(p *peer) { p.send(one, write(0, 0, nil)); p.closeOrderly() },
		"as the verbs":  func(p *peer) { p.send(one, immediate(2, 0)); p.modify(Closing) },
		"in the middle": func(p *peer) { p.send(one, send(2, nil).more()); p.closeOrderly() },
	} {
		p := responder(t, patient(1<<20, 100))
		p.send(write(0, 0, nil))
		closes(p)
		p.want(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, one))
		if f := p.wantCause(rdmap.CodeDDPInvalidMSNNoBuffer, false); !f.HasOp || f.Op != rdmap.OpSend {
			t.Errorf("%s: %v", name, f)
		}
		p.wantEnd(Terminate, Finish)
		p.noCompletion()
	}
	p := responder(t, patient(1<<20, 100))
	p.post(work(1, OpRead, SGE{Region: p.region(make([]byte, 1), memory.LocalWrite), Offset: 0, Length: 1}))
	p.send(write(0, 0, nil))
	p.next()
	p.closeOrderly()
	p.send(one)
	p.want(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, one))
	p.completion(flushed(1, OpRead))
}

// A consumer that discards closes in order beside what waits, and beside what comes after that and finds no receive.
// What waits behind it is carried out, and a receive that is posted gets its message as ever.
func TestRNRDiscard(t *testing.T) {
	memoryOf := make([]byte, 3)
	p := responder(t, patient(1<<20, 100), func(s *setup) { s.Discard = true })
	region := p.region(memoryOf, remoteAll)
	p.receive(1)
	p.send(send(1, nil), send(2, numbered(2000)), write(region.STag(), 0, []byte("abc")), send(3, []byte("d")).more())
	p.completion(success(1, OpReceive, 0))
	p.closeOrderly()
	if string(memoryOf) != "abc" {
		t.Errorf("the Write behind what waits has brought %q", memoryOf)
	}
	p.send(send(3, []byte("e")).at(1), immediate(4, 0), send(5, nil))
	p.fin()
	p.noCompletion()
	if n := p.Machine.Stats().Discarded; n != 4 {
		t.Errorf("%d messages were discarded, want 4", n)
	}
	p.wantState(Idle)
}

// After the peer's FIN, too, a close tells the peer of what has waited in vain; and where our half is closed already, a
// reset does.
func TestRNRCloseAfterFIN(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	p.send(send(1, nil))
	p.fin()
	p.closeOrderly()
	p.want(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(1, nil)))
	p.wantNothing()
	p.wantLLP(Drop)
	p.wantState(Error)
	p = responder(t, patient(1<<20, 100))
	p.send(send(1, nil))
	p.Machine.BeginHalfClose(p.clock)
	p.collectOutputs()
	p.closeOrderly()
	p.wantCause(rdmap.CodeDDPInvalidMSNNoBuffer, false)
	p.wantLLP(Finish, Reset)
}

// A FIN that waits for its turn is one all the same: nothing may come after it, and no Read is answered after it. Where
// Reads are outstanding it has its turn at once.
//
// Proves D31.
func TestRNRFIN(t *testing.T) {
	ended := func() *peer {
		p := responder(t, patient(1<<20, 100))
		p.send(send(1, nil))
		p.fin()
		return p
	}
	p := ended()
	p.send(send(2, nil))
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantNotices(NoticeConnectionLost)
	p = ended()
	p.post(work(1, OpRead, SGE{Region: p.region(make([]byte, 1), memory.LocalWrite), Offset: 0, Length: 1}))
	p.next()
	p.wantCause(rdmap.CodeCatastrophicStream, false)
	p = responder(t, patient(1<<20, 100))
	p.post(work(1, OpRead, SGE{Region: p.region(make([]byte, 1), memory.LocalWrite), Offset: 0, Length: 1}))
	p.send(send(1, nil))
	p.next()
	p.fin()
	p.wantCause(rdmap.CodeCatastrophicStream, false)
	s := overAware(t, mpa.RoleResponder, patient(1<<20, 100))
	r := s.region(make([]byte, 2*large), remoteAll)
	s.writes(send(1, nil), write(r.STag(), 0, numbered(large)), write(r.STag(), large, numbered(large)))
	s.inputTo(s.begins[1])
	s.fin()
	s.showFPDU(2)
	if s.Machine.Stats().Ahead.Placed != 0 {
		t.Error("placed after a FIN")
	}
}

// What waits counts against what all connections together may have wait. When that is spent the connection ends as
// without Config.RNR, be it the one that takes or another, and gives it back.
//
// Proves Z01.
func TestRNRBudget(t *testing.T) {
	const one = AheadCost + 18 + 10
	spent := func(end func(p *peer)) {
		b := &purse{2 * one}
		p := responder(t, patient(1<<20, 100), func(s *setup) { s.Waiting = b })
		p.send(send(1, numbered(10)), send(2, numbered(10)))
		if b.left != 0 {
			t.Errorf("%d bytes are left", b.left)
		}
		p.receiveLate(1, all(p.region(make([]byte, 10), memory.LocalWrite), 10))
		p.completion(success(1, OpReceive, 10))
		if b.left != one {
			t.Errorf("%d bytes are left after the first", b.left)
		}
		end(p)
		p.want(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(2, numbered(10))))
		if f := p.wantCause(rdmap.CodeDDPInvalidMSNNoBuffer, false); !errors.Is(f, errSpent) {
			t.Errorf("%v", f)
		}
		if b.left != 2*one {
			t.Errorf("%d bytes are left in the end", b.left)
		}
	}
	spent(func(p *peer) { p.send(send(3, numbered(11))) })
	spent(func(p *peer) { p.Machine.HoldsTooMuch(p.clock, errSpent); p.collectOutputs() })
	p := responder(t, patient(1<<20, 100))
	p.Machine.HoldsTooMuch(p.clock, errSpent) // when nothing waits any more
	p.wantState(RTS)
}

// Whatever ends the connection ends what waits: a Terminate of the peer's, an abort. The next has nothing of it.
func TestRNRLost(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	p.send(send(1, nil), send(2, nil))
	p.fin()
	p.modify(Error)
	p.wantLLP(Reset)
	if p.Machine.ReceiverNotReady() || p.Machine.HoldsBack() {
		t.Error("something waits")
	}
	p.modify(Idle)
	p = responder(t, patient(1<<20, 100))
	p.send(send(1, nil), terminate(0x0207))
	p.wantCause(0x0207, true)
	if p.Machine.ReceiverNotReady() {
		t.Error("something waits")
	}
}
