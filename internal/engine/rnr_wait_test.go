package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/rdmap"
)

// waitsFor has a QP keep what finds no receive for so long.
func waitsFor(d time.Duration) func(*setup) {
	return func(s *setup) { s.RNR = RNR{Bytes: 1 << 20, Messages: 100, Wait: d} }
}

// What waits is waited for so long after the last message was taken, and not longer. The peer learns which found no
// receive.
func TestRNRWait(t *testing.T) {
	p := responder(t, waitsFor(time.Minute))
	p.send(send(1, nil), send(2, nil))
	p.advance(59 * time.Second)
	p.send(send(3, nil)) // which gives the others no more time
	p.receiveLate(1)
	p.completion(success(1, OpReceive, 0))
	p.advance(59 * time.Second)
	p.wantState(RTS)
	p.advance(time.Second)
	p.want(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(2, nil)))
	if f := p.wantCause(rdmap.CodeDDPInvalidMSNNoBuffer, false); !errors.Is(f, ErrTimeout) {
		t.Errorf("%v", f)
	}
}

// Where all was taken there is nothing to wait for, and what waits later has its own time.
func TestRNRWaitAgain(t *testing.T) {
	p := responder(t, waitsFor(time.Minute))
	for id := range uint64(3) {
		p.send(send(uint32(id+1), nil))
		p.advance(40 * time.Second)
		p.receiveLate(id)
		p.completion(success(id, OpReceive, 0))
	}
	p.advance(time.Hour)
	p.wantState(RTS)
	p.wantNothing()
}

// A peer that has closed its half is waited for no longer than a second, so that the consumer learns of that; without a
// bound, for ever.
func TestRNRWaitAfterEnd(t *testing.T) {
	for wait, ends := range map[time.Duration]bool{time.Minute: true, 0: false} {
		p := responder(t, waitsFor(wait))
		p.send(send(1, nil))
		p.advance(10 * time.Second)
		p.fin()
		p.advance(999 * time.Millisecond)
		p.wantState(RTS)
		p.advance(time.Millisecond)
		if (p.Machine.State() != RTS) != ends {
			t.Errorf("with a bound of %v: %v", wait, p.Machine.State())
		}
	}
}
