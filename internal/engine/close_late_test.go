package engine

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// Closing and Terminate do not last longer than CloseTimeout.
func TestCloseTimeout(t *testing.T) {
	p := initiator(t)
	p.modify(Closing)
	p.wantLLP(Finish)
	p.advance(closeTime - 1)
	p.wantState(Closing)
	p.advance(1)
	p.wantState(Error)
	p.wantLLP(Reset)
	if !errors.Is(p.Machine.Cause(), ErrLost) {
		t.Error(p.Machine.Cause())
	}

	p = initiator(t)
	p.modify(Terminate)
	p.want(terminate(0))
	p.wantNothing()
	p.wantLLP(Finish)
	p.advance(closeTime)
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantCause(0, false)
}

// A Terminate that the LLP does not take is given up in the same time, and work
// whose bytes are in flight is flushed when they are not any more.
func TestTerminateNotTaken(t *testing.T) {
	p := initiator(t)
	p.window = 5
	p.post(work(1, OpSend))
	p.output()
	p.modify(Terminate)
	p.noCompletion()
	p.advance(closeTime)
	p.wantState(Error)
	p.wantLLP(Reset)
	p.noCompletion()
	p.Machine.Abandon(p.clock, p.g)
	p.Machine.Failed(p.clock, errReset)
	p.collectOutputs()
	p.completion(flushed(1, OpSend))
}

// Nor is it sent when the connection is gone.
func TestTerminateTooLate(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.modify(Terminate)
	p.noCompletion()
	p.Machine.HandleTimeout(p.Machine.Deadline())
	p.collectOutputs()
	p.completion(flushed(1, OpReceive))
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantNothing()
	p.Machine.Abort(errReset) // once more does no harm
	p.collectOutputs()
	p.wantLLP()
	p.wantCause(0, false)
}

// A connection that is lost before the Terminate was sent leaves no work behind.
func TestLostBeforeTerminate(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.post(work(2, OpSend))
	p.modify(Terminate)
	p.noCompletion()
	p.Machine.Failed(p.clock, errReset)
	p.collectOutputs()
	p.wantState(Error)
	p.wantLLP(Drop)
	p.completion(flushed(2, OpSend), flushed(1, OpReceive))
}

// Abort resets the connection and tells why.
func TestAbort(t *testing.T) {
	p := initiator(t)
	p.post(work(1, OpSend))
	p.Machine.Abort(errReset)
	p.collectOutputs()
	p.wantState(Error)
	p.wantLLP(Reset)
	p.completion(flushed(1, OpSend))
	if p.Machine.Cause() != errReset {
		t.Error(p.Machine.Cause())
	}
}

// A connection that is terminated ends with the peer's FIN all the same: nothing of ours is worth waiting for.
func TestTerminatedDoesNotPart(t *testing.T) {
	p := initiator(t, func(s *setup) { s.TellsEnd = true })
	p.send(message(rdmap.OpTerminate, make([]byte, 4)))
	p.wantState(Terminate)
	p.wantEndSilently()
}

// What is lost after an end that looked orderly makes it another, once.
func TestUndelivered(t *testing.T) {
	p := initiator(t)
	p.fin()
	p.closeOrderly()
	p.wantState(Idle)
	p.wantLLP(Drop)
	for range 2 {
		p.Machine.Undelivered(errReset)
		p.collectOutputs()
		p.wantState(Error)
		p.wantLLP()
		if !errors.Is(p.Machine.Cause(), ErrLost) || !errors.Is(p.Machine.Cause(), errReset) {
			t.Errorf("ended with %v", p.Machine.Cause())
		}
	}
}
