package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A Responder that has received nothing may send nothing. If the Initiator owes it an
// FPDU, a close waits for that, and says so.
//
// Proves Q11.
func TestDrainMute(t *testing.T) {
	p := responder(t, func(s *setup) { s.PeerToPeer, s.RTR = true, mpa.RTRWrite })
	p.post(work(1, OpSend))
	p.closeOrderly()
	p.wantState(RTS)
	p.advance(closeTime)
	p.wantNothing()
	p.wantState(Error)
	err := p.Machine.Cause()
	for _, is := range []error{ErrMute, ErrLost, ErrTimeout} {
		if !errors.Is(err, is) {
			t.Errorf("%v: is no %v", err, is)
		}
	}
	if want := "the Initiator did not send its first FPDU within " + p.Machine.cfg.CloseTimeout.String() +
		": requests that were never sent: 1"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v: not %q", err, want)
	}
}

// So it is with nothing posted, of which nothing is said then.
//
// Proves Q11.
func TestDrainMuteIdle(t *testing.T) {
	p := responder(t, func(s *setup) { s.PeerToPeer, s.RTR = true, mpa.RTRWrite })
	p.closeOrderly()
	p.advance(closeTime)
	p.wantState(Error)
	if err := p.Machine.Cause(); !errors.Is(err, ErrMute) || !errors.Is(err, ErrLost) ||
		strings.Contains(err.Error(), "never sent") {
		t.Error(err)
	}
}

// If the Initiator does not owe it one, both may wait for ever: a close does not wait,
// flushes what was posted, says why, and closes the connection by FIN.
//
// Proves Q11.
func TestCloseMute(t *testing.T) {
	p := responder(t)
	p.post(work(1, OpSend))
	p.post(work(2, OpWrite))
	p.closeOrderly()
	p.completion(flushed(1, OpSend), flushed(2, OpWrite))
	if err := p.Machine.Cause(); !errors.Is(err, ErrMute) || !strings.Contains(err.Error(), "never sent: 2") ||
		p.Machine.Stats().Held != 2 {
		t.Error(err, p.Machine.Stats().Held)
	}
	p.wantNothing()
	p.wantLLP(Finish)
	p.fin()
	p.wantLLP(Drop)
	p.wantState(Error)

	p = responder(t) // what the Initiator has under way is delivered all the same
	p.post(work(1, OpSend))
	p.receive(2, all(p.region(make([]byte, 4), memory.LocalWrite), 4))
	p.closeOrderly()
	p.completion(flushed(1, OpSend))
	p.wantLLP(Finish)
	p.send(send(1, []byte("late")))
	p.completion(success(2, OpReceive, 4))
	p.wantState(RTS)
	p.fin()
	p.wantLLP(Drop)
	p.wantState(Error)

	p = responder(t) // the Initiator has nothing to say: it may close in order
	p.post(work(1, OpSend))
	p.fin()
	p.completion(flushed(1, OpSend))
	if err := p.Machine.Cause(); !errors.Is(err, ErrLost) || !errors.Is(err, ErrMute) {
		t.Error(err)
	}
	p.wantLLP(Drop)
	p.wantState(Error)

	p = responder(t) // with nothing posted there is nothing to be lost
	p.closeOrderly()
	p.fin()
	p.wantState(Idle)
}

// Who is owed no RTR indication closes at once, although it has heard nothing: an Initiator, and a Responder over SCTP,
// where a FIN does not meet one.
func TestCloseUnheard(t *testing.T) {
	p := initiator(t, p2p(mpa.RTRWrite))
	p.want(indications[mpa.RTRWrite])
	p.wantNothing()
	p.closeOrderly()
	p.wantLLP(Finish)

	s := overMessages(t, mpa.RoleResponder, p2p(mpa.RTRWrite))
	s.closeOrderly()
	s.wantLLP(Finish)
}

// A close that has given up its requests may be lost after that, with what the Initiator had under way: its cause says
// both.
func TestCloseMuteLost(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *peer)
		want []error
	}{
		"silent":  {func(p *peer) { p.advance(closeTime) }, []error{ErrLost, ErrTimeout}},
		"reset":   {func(p *peer) { p.Machine.Failed(p.clock, errReset) }, []error{ErrLost, errReset}},
		"aborted": {func(p *peer) { p.Machine.Abort(ErrAborted) }, []error{ErrAborted}},
	} {
		p := responder(t)
		p.post(work(1, OpSend))
		p.closeOrderly()
		p.completion(flushed(1, OpSend))
		p.wantLLP(Finish)
		c.end(p)
		p.collectOutputs()
		p.wantLLP(Reset)
		p.wantState(Error)
		for _, is := range append(c.want, ErrMute) {
			if err := p.Machine.Cause(); !errors.Is(err, is) {
				t.Errorf("%s: %v: is no %v", name, err, is)
			}
		}
	}
}

// What an unheard Responder finds resets the connection, as no Terminate may be sent, and its cause says so once.
//
// Proves Q11.
func TestFailureUnheard(t *testing.T) {
	for name, fails := range map[string]func(p *peer){
		"CRC": func(p *peer) {
			b := p.w.Append(nil, send(1, []byte("hello")).ulpdu())
			b[len(b)-1] ^= 0xff
			p.sendBytes(b)
		},
		"Modify": func(p *peer) { testrig.Must(t, p.Machine.Modify(p.clock, Terminate)) },
	} {
		p := responder(t)
		fails(p)
		p.collectOutputs()
		p.wantLLP(Reset)
		p.wantState(Error)
		if f, ok := p.Machine.Cause().(*Failure); !ok {
			t.Errorf("%s: %v", name, p.Machine.Cause())
		} else if again := strings.Count(p.Machine.Cause().Error(), f.Error()); again != 1 {
			t.Errorf("%s: %v", name, p.Machine.Cause())
		}
	}
}
