package engine

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// inState brings a QP into a state.
var inState = map[State]func(t *testing.T) *peer{
	Idle: func(t *testing.T) *peer {
		p := initiator(t)
		p.closeOrderly()
		p.fin()
		return p
	},
	RTS: func(t *testing.T) *peer { return initiator(t) },
	Terminate: func(t *testing.T) *peer {
		p := initiator(t)
		p.modify(Terminate)
		return p
	},
	Error: func(t *testing.T) *peer {
		p := initiator(t)
		p.modify(Error)
		return p
	},
	Closing: func(t *testing.T) *peer {
		p := initiator(t)
		p.modify(Closing)
		return p
	},
}

// Every transition that a consumer may ask for, and every one it may not: those
// change nothing. RDMA verbs, section 6.2.
func TestModify(t *testing.T) {
	allowed := map[[2]State]bool{
		{Idle, Idle}: true, {Idle, Error}: true,
		{RTS, Closing}: true, {RTS, Terminate}: true, {RTS, Error}: true,
		{Error, Idle}: true,
	}
	for from := Idle; from <= Closing; from++ {
		for to := Idle; to <= Closing+1; to++ {
			p := inState[from](t)
			p.wantState(from)
			err := p.Machine.Modify(p.clock, to)
			want := from
			if allowed[[2]State{from, to}] {
				want = to
			} else if !errors.Is(err, ErrBadState) {
				t.Errorf("from %v to %v: %v", from, to, err)
			}
			if p.Machine.State() != want {
				t.Errorf("from %v to %v: in %v; %v", from, to, p.Machine.State(), err)
			}
			if MayAsk(from, to) != allowed[[2]State{from, to}] {
				t.Errorf("MayAsk(%v, %v)", from, to)
			}
		}
	}
	for s := range Closing + 1 {
		if MayAsk(Closing+1, s) || Legal(Closing+1, s) || MayAsk(s, Closing+1) || Legal(s, Closing+1) {
			t.Error("an unknown state")
		}
	}
	if got := (Closing + 1).String(); got != "unknown state" {
		t.Error(got)
	}
}

// Only an idle QP can be connected.
func TestConnectState(t *testing.T) {
	for from, reach := range inState {
		p := reach(t)
		err := p.Machine.Connect(&newSetup(mpa.RoleInitiator).Params)
		if (err == nil) != (from == Idle) || from != Idle && p.Machine.State() != from {
			t.Errorf("in state %v: %v, then %v", from, err, p.Machine.State())
		}
	}
}

// Proves D30: in any state but Idle and RTS posts are refused.
func TestPostState(t *testing.T) {
	for s, reach := range inState {
		p := reach(t)
		w, r := work(1, OpSend), RecvWork{}
		send, receive := p.Machine.PostSend(&w), p.Machine.PostReceive(&r)
		open := s == Idle || s == RTS
		if (send == nil) != open || (receive == nil) != open {
			t.Errorf("in state %v: %v, %v", s, send, receive)
		}
		if !open && !(errors.Is(send, ErrBadState) && errors.Is(receive, ErrBadState)) {
			t.Errorf("in state %v: %v, %v", s, send, receive)
		}
	}
}

// A refused post says why the connection ended.
func TestPostTellsCause(t *testing.T) {
	p := inState[Terminate](t)
	w := work(1, OpSend)
	var f *Failure
	if err := p.Machine.PostSend(&w); !errors.As(err, &f) || f.Code != rdmap.CodeLocalCatastrophic {
		t.Error(err)
	}
}

// In Idle work is queued and waits for the connection; nothing completes.
func TestIdleQueues(t *testing.T) {
	s := newSetup(mpa.RoleInitiator)
	p := &peer{clock: epoch}
	p.host = newHost(t, &p.clock, s)
	p.receive(1)
	p.post(work(2, OpSend))
	p.wantNothing()
	p.noCompletion()
	p.start(s)
	p.want(send(1, nil))
	p.send(send(1, nil))
	p.completion(success(2, OpSend, 0), success(1, OpReceive, 0))
}

// From Idle to Error all that was posted is flushed; nothing is done to a
// connection, as there is none.
func TestIdleToError(t *testing.T) {
	s := newSetup(mpa.RoleInitiator)
	p := &peer{clock: epoch}
	p.host = newHost(t, &p.clock, s)
	p.post(work(1, OpSend))
	p.post(work(2, OpRead))
	p.receive(3)
	p.modify(Error)
	p.completion(flushed(1, OpSend), flushed(2, OpRead), flushed(3, OpReceive))
	p.wantLLP()
	p.modify(Idle)
	p.start(s)
	p.post(work(4, OpSend))
	p.want(send(1, nil))
}

// Proves P49: RTS to Terminate on the consumer's wish sends 0x0000 and flushes.
// Proves P50: an error that no message brought carries no headers.
func TestModifyTerminate(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.modify(Terminate)
	p.want(terminate(0x0000))
	p.completion(flushed(1, OpReceive))
	p.wantNotices(NoticeTerminateSent)
	p.wantEnd(Terminate, Finish)
	p.wantState(Error)
	p.wantCause(0x0000, false)
}

// RTS to Error resets the connection; what was posted is flushed.
func TestModifyError(t *testing.T) {
	p := initiator(t)
	p.post(work(1, OpSend))
	p.receive(2)
	p.modify(Error)
	p.wantNothing()
	p.wantLLP(Reset)
	p.completion(flushed(1, OpSend), flushed(2, OpReceive))
	if p.Machine.Cause() == nil {
		t.Error("no cause")
	}
}

// Back to Idle is refused while bytes are in flight, as their memory is not the
// consumer's again before.
func TestErrorToIdleWhileFlushing(t *testing.T) {
	p := initiator(t)
	p.window = 3
	p.post(work(1, OpSend))
	p.output()
	p.modify(Error)
	p.noCompletion()
	if err := p.Machine.Modify(p.clock, Idle); !errors.Is(err, ErrBadState) {
		t.Fatal(err)
	}
	p.Machine.Abandon(p.clock, p.g)
	p.collectOutputs()
	p.completion(flushed(1, OpSend))
	p.modify(Idle)
}

// The same when the LLP takes the rest after all.
func TestErrorWhileInFlight(t *testing.T) {
	p := initiator(t)
	p.window = 3
	p.post(work(1, OpSend))
	p.post(work(2, OpSend))
	p.receive(3)
	p.output()
	p.modify(Error)
	p.noCompletion()
	if p.Machine.Pending() {
		t.Error("there is something to be sent on a connection that has ended")
	}
	v := p.Machine.Output(p.clock, p.g)
	n := 0
	for _, b := range v {
		n += len(b)
	}
	p.Machine.Sent(p.clock, p.g, n)
	p.collectOutputs()
	if len(p.done) != 3 || p.done[2] != flushed(3, OpReceive) {
		t.Fatalf("%+v", p.done)
	}
}

// Closing on the consumer's wish: with work under way it is a bad close.
func TestModifyClosing(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.modify(Closing)
	p.completion(flushed(1, OpReceive))
	p.wantNothing()
	p.wantLLP(Finish)
	p.fin()
	p.wantLLP(Drop)
	p.wantState(Idle)
	p.wantNotices(NoticeCloseComplete)
	if p.Machine.Cause() != ErrClosedHere {
		t.Error(p.Machine.Cause())
	}

	p = initiator(t)
	p.post(work(1, OpSend))
	p.modify(Closing)
	p.wantStates(RTS, Closing, Error)
	p.wantLLP(Reset)
	p.wantNotices(NoticeBadClose, NoticeConnectionLost)
	p.completion(flushed(1, OpSend))

	p = initiator(t)
	p.send(request(1, rdmap.ReadRequest{}))
	p.modify(Closing)
	p.wantState(Error)
}

// After an orderly close the QP can be connected again, and all state of MPA, DDP
// and RDMAP begins anew: MSNs, stream offsets, markers, the queues of Reads.
func TestConnectAgain(t *testing.T) {
	s := newSetup(mpa.RoleInitiator)
	s.MarkersReceive, s.MarkersSend, s.CRC = true, true, true
	p := initiator(t, func(x *setup) { *x = *s })
	for range 3 {
		r := p.region(make([]byte, 10), remoteAll)
		p.receive(1, all(r, 10))
		p.post(work(2, OpSend))
		w := work(3, OpRead, all(r, 10))
		w.RemoteSTag = 9
		p.post(w)
		p.want(send(1, nil), request(1, rdmap.ReadRequest{SinkSTag: r.STag(), Size: 10, SrcSTag: 9}))
		p.send(send(1, []byte("abc")), request(1, rdmap.ReadRequest{SinkSTag: 5, SrcSTag: 6}))
		p.want(response(5, 0, nil))
		p.send(response(r.STag(), 0, numbered(10)))
		p.completion(success(2, OpSend, 0), success(1, OpReceive, 3), success(3, OpRead, 10))
		p.closeOrderly()
		p.wantNothing()
		p.wantLLP(Finish)
		p.fin()
		p.wantLLP(Drop)
		p.wantState(Idle)
		p.start(s)
	}
}

// States, statuses and transitions have names and bounds.
func TestNames(t *testing.T) {
	if RTS.String() != "RTS" || State(9).String() != "unknown state" {
		t.Error("states")
	}
	if StatusFatal.String() != "fatal error" || Status(99).String() != "unknown status" {
		t.Error("statuses")
	}
	if !Legal(RTS, Closing) || Legal(Idle, Closing) {
		t.Error("transitions")
	}
}

// Every status has a name of its own, and no other has one.
func TestStatusNames(t *testing.T) {
	seen := map[string]bool{}
	for s := StatusSuccess; s <= StatusRegisterFailed; s++ {
		if name := s.String(); name == "" || name == "unknown status" || seen[name] {
			t.Errorf("status %d: %q", s, name)
		}
		seen[s.String()] = true
	}
	if got := (StatusRegisterFailed + 1).String(); got != "unknown status" {
		t.Error(got)
	}
}
