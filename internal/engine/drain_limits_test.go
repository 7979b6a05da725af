package engine

import (
	"strings"
	"testing"
	"time"
)

// The limit of a close as a whole holds where it is shorter than the time without
// progress too.
func TestDrainLimitIsShorter(t *testing.T) {
	p := initiator(t, func(s *setup) { s.CloseLimit = closeTime / 2 })
	p.closeOrderly()
	p.advance(closeTime/2 - 1)
	p.wantState(RTS)
	p.advance(time.Millisecond)
	p.wantState(Error)
	if err := p.Machine.Cause(); !strings.Contains(err.Error(), "took more than") {
		t.Error(err)
	}
}

// A Send that is under way keeps a close, by its bytes, before it is complete, in whichever order its segments come.
//
// Proves D33.
func TestDrainLongSend(t *testing.T) {
	const limit, bytes, n = 40 * time.Second, 1 << 20, 4100
	for name, c := range map[string]struct{ first, step int }{"in order": {0, n}, "from its end": {bytes - n, -n}} {
		p := initiator(t, func(s *setup) { s.CloseLimit = limit })
		r := p.region(make([]byte, bytes), remoteAll)
		p.receive(1, all(r, bytes))
		p.closeOrderly()
		mo := c.first
		if got := keeps(p, func(int) {
			for range 4 {
				p.send(send(1, numbered(n)).more().at(mo))
				mo += c.step
			}
		}); got != limit {
			t.Errorf("%s: waited for %v: %v", name, got, p.Machine.Cause())
		}
	}
}

// Who closes once more gains no time.
func TestDrainAgain(t *testing.T) {
	p := closing(t)
	p.advance(closeTime - time.Second)
	p.closeOrderly()
	p.advance(time.Second)
	p.wantState(Error)
}

// A Read that was there when the close began counts until it is answered. Those after
// it, which the peer has asked for meanwhile, do not keep the close alive.
func TestDrainOldReadIsAnswered(t *testing.T) {
	const old, limit, rate = 64 << 10, time.Minute, 4 << 10
	p := initiator(t, func(s *setup) { s.CloseLimit = limit })
	r := p.region(make([]byte, 4<<20), remoteAll)
	p.window = 0
	p.send(request(1, readOf(r.STag(), old)))
	p.closeOrderly()
	p.send(request(2, readOf(r.STag(), 4<<20)))
	got := keeps(p, func(int) { p.window = rate })
	// One gathered write may hold the end of the old response and the beginning of the next.
	if most := 2*old/rate*time.Second + 2*closeTime; got > most || got < old/rate*time.Second {
		t.Errorf("waited for %v, want no more than %v: %v", got, most, p.Machine.Cause())
	}
}

// What others move on the same way, and ours as it leaves, keeps a close alive until its limit, and less of it does
// not.
func TestDrainMoved(t *testing.T) {
	const limit = time.Minute
	p := closing(t, func(s *setup) { s.CloseLimit = limit })
	for p.clock.Sub(epoch)+closeTime < limit {
		p.wantState(RTS)
		p.Machine.Moved(p.clock, drainBytes/2)
		p.Machine.Moved(p.clock, drainBytes/2)
		p.advance(closeTime - 1)
	}
	p.Machine.Moved(p.clock, drainBytes)
	p.advance(closeTime)
	p.wantState(Error)
	if err := p.Machine.Cause(); !strings.Contains(err.Error(), "took more than") {
		t.Error(err)
	}

	p = closing(t)
	p.advance(closeTime - 1)
	p.Machine.Moved(p.clock, drainBytes-1)
	p.advance(1)
	p.wantState(Error)
	p.Machine.Moved(p.clock, drainBytes) // too late
	p.wantState(Error)
}

// While nothing is closed, nothing is waited for, whatever others move; and a connection that ends in error has no more
// time by it.
func TestMovedMeanwhile(t *testing.T) {
	p := initiator(t)
	p.Machine.Moved(p.clock, drainBytes)
	if at := p.Machine.Deadline(); !at.IsZero() {
		t.Errorf("a deadline after %v", at.Sub(p.clock))
	}
	p.closeOrderly()
	p.modify(Terminate)
	p.advance(closeTime - 1)
	p.Machine.Moved(p.clock, drainBytes)
	p.advance(1)
	p.wantState(Error)
}

// Once the limit of a close is over it takes no more Reads, though the call that ends it has yet to come.
func TestDrainLimitOfReads(t *testing.T) {
	const limit = closeTime / 4
	p, r := served(t, func(s *setup) { s.CloseLimit = limit })
	p.window = 0
	p.send(request(2, readOf(r.STag(), 10)))
	p.closeOrderly()
	p.clock = p.clock.Add(limit)
	p.send(write(1, 0, nil), request(3, readOf(r.STag(), 20)))
	if got := p.Machine.Stats().Odd.Late; got != 1 {
		t.Errorf("%d late Reads", got)
	}
	p.Machine.HandleTimeout(p.clock)
	p.collectOutputs()
	p.wantState(Error)
}
