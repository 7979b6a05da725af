package engine

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Where the LLP tells how our half has ended after the peer's, that decides between an orderly end and a lost
// connection. A peer that acknowledges nothing is not waited for beyond CloseTimeout.
func TestCloseParts(t *testing.T) {
	const limit = time.Minute
	for name, c := range map[string]struct {
		do    func(p *peer)
		state State
		llp   LLP
		cause error
	}{
		"acknowledged": {func(p *peer) { p.Machine.FINAcked(p.clock); p.collectOutputs() }, Idle, Drop, ErrPeerClosed},
		"reset":        {func(p *peer) { p.Machine.Failed(p.clock, errReset); p.collectOutputs() }, Error, Reset, ErrLost},
		"neither":      {func(p *peer) { p.advance(closeTime) }, Idle, Drop, ErrPeerClosed},
		"all but the FIN": {func(p *peer) {
			p.Machine.Unacked(p.clock, 100)
			p.advance(closeTime - 1)
			p.Machine.Unacked(p.clock, 0)
			p.advance(closeTime - 1)
			p.wantState(Closing)
			p.advance(1)
		}, Idle, Drop, ErrPeerClosed},
		"not all": {func(p *peer) {
			p.Machine.Unacked(p.clock, 100)
			p.advance(closeTime - 1)
			p.Machine.Unacked(p.clock, 99)
			p.advance(closeTime - 1)
			p.wantState(Closing)
			p.Machine.Unacked(p.clock, 99)
			p.advance(1)
		}, Error, Reset, ErrTimeout},
		"too slowly": {func(p *peer) {
			for left := 1000; left > 0 && p.Machine.State() == Closing; left-- {
				p.Machine.Unacked(p.clock, left)
				p.advance(closeTime - 1)
			}
			if took := p.clock.Sub(epoch); took < limit || took > limit+closeTime {
				p.Errorf("it took %v", took)
			}
		}, Error, Reset, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			p := initiator(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, limit })
			p.fin()
			p.closeOrderly()
			p.wantState(Closing)
			p.wantLLP(AwaitFINAck)
			c.do(p)
			p.wantState(c.state)
			p.wantLLP(c.llp)
			if !errors.Is(p.Machine.Cause(), c.cause) {
				t.Errorf("ended with %v", p.Machine.Cause())
			}
		})
	}
}

// The wait for the peer to acknowledge our half begins with its FIN, however long that took, within CloseLimit.
func TestFINAckBegins(t *testing.T) {
	const after = closeTime - 1
	for limit, want := range map[time.Duration]time.Duration{
		time.Minute:         after + closeTime,
		after + closeTime/2: after + closeTime/2,
	} {
		p := closing(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, limit })
		p.advance(after)
		p.fin()
		p.wantLLP(AwaitFINAck)
		p.advance(want - after - 1)
		p.wantState(Closing)
		p.advance(1)
		p.wantState(Idle)
	}
}

// CloseLimit counts from where the close began, and is no limit where it is not positive.
func TestFINAckLimit(t *testing.T) {
	const limit = 2 * closeTime
	p := closing(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, limit })
	p.advance(closeTime - 1)
	p.fin()
	p.Machine.Unacked(p.clock, 2)
	p.advance(closeTime - 1)
	p.Machine.Unacked(p.clock, 1)
	p.advance(1)
	p.wantState(Closing)
	p.advance(1)
	p.wantState(Error)
	if err := p.Machine.Cause(); !strings.Contains(err.Error(), "within "+limit.String()) {
		t.Error(err)
	}
	for _, none := range []time.Duration{0, -1} {
		p := initiator(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, none })
		p.fin()
		p.closeOrderly()
		p.Machine.Unacked(p.clock, 1)
		p.advance(closeTime - 1)
		p.wantState(Closing)
		p.advance(1)
		p.wantState(Error)
	}
}

// A peer that lacks nothing but our FIN is waited for once, however often that is told.
func TestFINAckLacksFIN(t *testing.T) {
	p := initiator(t, func(s *setup) { s.TellsEnd = true })
	p.fin()
	p.closeOrderly()
	for range 5 {
		p.Machine.Unacked(p.clock, 0)
		p.advance(closeTime / 5)
	}
	p.wantState(Idle)
	p.wantLLP(AwaitFINAck, Drop)
}
