package engine

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Where the LLP tells how our half has ended after the peer's, that decides between an orderly end and a lost connection. A
// peer that acknowledges nothing is not waited for beyond CloseTimeout.
func TestCloseParts(t *testing.T) {
	const limit = time.Minute
	for name, c := range map[string]struct {
		do    func(p *peer)
		state State
		llp   LLP
		cause error
	}{
		"acknowledged": {func(p *peer) { p.QP.Parted(p.clock); p.settle() }, Idle, Drop, ErrPeerClosed},
		"reset":        {func(p *peer) { p.QP.Failed(p.clock, errReset); p.settle() }, Error, Reset, ErrLost},
		"neither":      {func(p *peer) { p.advance(closeTime) }, Idle, Drop, ErrPeerClosed},
		"all but the FIN": {func(p *peer) {
			p.QP.Owed(p.clock, 100)
			p.advance(closeTime - 1)
			p.QP.Owed(p.clock, 0)
			p.advance(closeTime - 1)
			p.wantState(Closing)
			p.advance(1)
		}, Idle, Drop, ErrPeerClosed},
		"not all": {func(p *peer) {
			p.QP.Owed(p.clock, 100)
			p.advance(closeTime - 1)
			p.QP.Owed(p.clock, 99)
			p.advance(closeTime - 1)
			p.wantState(Closing)
			p.QP.Owed(p.clock, 99)
			p.advance(1)
		}, Error, Reset, ErrTimeout},
		"too slowly": {func(p *peer) {
			for left := 1000; left > 0 && p.QP.State() == Closing; left-- {
				p.QP.Owed(p.clock, left)
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
			p.wantLLP(Part)
			c.do(p)
			p.wantState(c.state)
			p.wantLLP(c.llp)
			if !errors.Is(p.QP.Cause(), c.cause) {
				t.Errorf("ended with %v", p.QP.Cause())
			}
		})
	}
}

// The wait for the peer to acknowledge our half begins with its FIN, however long that took, within CloseLimit.
func TestPartBegins(t *testing.T) {
	const after = closeTime - 1
	for limit, want := range map[time.Duration]time.Duration{
		time.Minute:         after + closeTime,
		after + closeTime/2: after + closeTime/2,
	} {
		p := closing(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, limit })
		p.advance(after)
		p.fin()
		p.wantLLP(Part)
		p.advance(want - after - 1)
		p.wantState(Closing)
		p.advance(1)
		p.wantState(Idle)
	}
}

// CloseLimit counts from where the close began, and is no limit where it is not positive.
func TestPartLimit(t *testing.T) {
	const limit = 2 * closeTime
	p := closing(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, limit })
	p.advance(closeTime - 1)
	p.fin()
	p.QP.Owed(p.clock, 2)
	p.advance(closeTime - 1)
	p.QP.Owed(p.clock, 1)
	p.advance(1)
	p.wantState(Closing)
	p.advance(1)
	p.wantState(Error)
	if err := p.QP.Cause(); !strings.Contains(err.Error(), "within "+limit.String()) {
		t.Error(err)
	}
	for _, none := range []time.Duration{0, -1} {
		p := initiator(t, func(s *setup) { s.TellsEnd, s.CloseLimit = true, none })
		p.fin()
		p.closeOrderly()
		p.QP.Owed(p.clock, 1)
		p.advance(closeTime - 1)
		p.wantState(Closing)
		p.advance(1)
		p.wantState(Error)
	}
}

// A peer that lacks nothing but our FIN is waited for once, however often that is told.
func TestPartLacksFIN(t *testing.T) {
	p := initiator(t, func(s *setup) { s.TellsEnd = true })
	p.fin()
	p.closeOrderly()
	for range 5 {
		p.QP.Owed(p.clock, 0)
		p.advance(closeTime / 5)
	}
	p.wantState(Idle)
	p.wantLLP(Part, Drop)
}
