package engine

import (
	"testing"
	"time"
)

// TestSendEarly: a Responder that is told to send although it has heard nothing begins
// then, and not before: an Initiator may take what comes with the Reply for an error.
func TestSendEarly(t *testing.T) {
	early := func(s *setup) { s.SendFrom = epoch.Add(50 * time.Millisecond) }

	p := responder(t, early)
	p.post(work(1, OpSend))
	p.wantNothing()
	p.advance(49 * time.Millisecond)
	p.wantNothing()
	p.advance(time.Millisecond)
	p.want(send(1, nil))
	p.completion(success(1, OpSend, 0))

	p = responder(t, early) // the Initiator's first FPDU comes before
	p.receive(1)
	p.send(send(1, nil))
	p.post(work(2, OpSend))
	p.want(send(1, nil))
	if at := p.Machine.Deadline(); !at.IsZero() {
		t.Errorf("there is a deadline in %v", at.Sub(p.clock))
	}

	p = responder(t, early) // a close waits for it
	p.post(work(1, OpSend))
	p.closeOrderly()
	p.wantNothing()
	p.advance(50 * time.Millisecond)
	p.want(send(1, nil))
	p.wantLLP(Finish)

	p = responder(t, early) // and so does the Initiator's FIN
	p.post(work(1, OpSend))
	p.fin()
	p.advance(50 * time.Millisecond)
	p.want(send(1, nil))
	p.wantLLP(Drop)
	p.wantState(Idle)
}
