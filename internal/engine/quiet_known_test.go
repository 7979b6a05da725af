package engine

import (
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// near is the round trip of a short path.
const near = time.Microsecond

func (p *peer) closeNear() {
	p.Machine.BeginClose(p.clock, near)
	p.collectOutputs()
}

// A peer that asked for a Read shortly before the close began may ask for another: it is
// waited for as one that sends meanwhile. A Read of nothing, as a Ready-to-Receive indication
// is, or one that is long ago, tells nothing.
func TestQuietReader(t *testing.T) {
	for _, c := range []struct {
		size uint32
		ago  time.Duration
		want time.Duration
	}{
		{10, 0, near + activeWait}, {10, readerTime - 1, near + activeWait}, {10, readerTime, near},
		{0, 0, near},
	} {
		p := responder(t)
		r := p.region(numbered(100), remoteAll)
		p.send(request(1, readOf(r.STag(), c.size)))
		p.next()
		p.advance(c.ago)
		p.closeNear()
		p.advance(c.want - 1)
		p.wantLLP()
		p.send(request(2, readOf(r.STag(), 20)))
		p.want(response(5, 0, numbered(20)))
		p.advance(near + activeWait - 1)
		p.wantLLP()
		p.advance(1)
		p.wantLLP(Finish)
	}

	p := responder(t)
	r := p.region(numbered(100), remoteAll)
	p.send(request(1, readOf(r.STag(), 10)))
	p.next()
	p.advance(readerTime)
	p.closeNear()
	p.advance(near)
	p.wantLLP(Finish)
}

// A peer in the middle of a message, or of an FPDU, has more to send, however long it is
// silent: the FIN waits for that and for the Read after it. Not for ever.
//
// Proves D30.
func TestQuietMidMessage(t *testing.T) {
	for name, pieces := range map[string]func(p *peer, stag uint32) (begin, end func()){
		"a Send": func(p *peer, _ uint32) (begin, end func()) {
			p.receive(1, all(p.region(make([]byte, 100), remoteAll), 100))
			return func() { p.send(send(1, numbered(60)).more()) }, func() { p.send(send(1, numbered(40)).at(60)) }
		},
		"a Write": func(p *peer, stag uint32) (begin, end func()) {
			return func() { p.send(write(stag, 0, numbered(10)).more()) },
				func() { p.send(write(stag, 10, numbered(10))) }
		},
		"an FPDU": func(p *peer, stag uint32) (begin, end func()) {
			b := p.w.Append(nil, write(stag, 0, numbered(100)).ulpdu())
			return func() { p.sendBytes(b[:7]) }, func() { p.sendBytes(b[7:]) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []bool{false, true} {
				p, r := served(t)
				p.advance(time.Second)
				target := p.region(make([]byte, 100), remoteAll)
				begin, end := pieces(p, target.STag())
				if before {
					begin()
					p.closeNear()
				} else {
					p.closeNear()
					begin()
				}
				p.advance(closeTime/2 - 1)
				p.wantLLP()
				end()
				p.send(request(2, readOf(r.STag(), 10)))
				p.want(response(5, 0, numbered(10)))
			}
			p, _ := served(t)
			begin, _ := pieces(p, p.region(make([]byte, 100), remoteAll).STag())
			begin()
			p.closeNear()
			p.advance(closeTime/2 - 1)
			p.wantLLP()
			p.advance(1)
			p.wantLLP(Finish)
		})
	}
}

// An empty Read, such as an RTR indication, tells of no peer that reads: the FIN waits for a round
// trip after it and no longer.
//
// Proves D30.
func TestQuietAfterEmptyRead(t *testing.T) {
	p := responder(t)
	p.send(request(1, readOf(1, 0)))
	p.want(response(5, 0, nil))
	p.closeFar()
	p.advance(rtt - 1)
	p.wantLLP()
	p.advance(1)
	p.wantLLP(Finish)
}

// owed is a Responder that waits for its Initiator's RTR indication.
func owed(t *testing.T, change ...func(*setup)) *peer {
	return responder(t, append(change, func(s *setup) { s.PeerToPeer, s.RTR = true, mpa.RTRWrite })...)
}

// A Responder that closes before it has heard the Initiator, and knows of no round trip, learns it from the
// Initiator's RTR indication: what the Initiator posted next, before it could know of the close, is answered.
//
// Proves D30.
func TestQuietLearned(t *testing.T) {
	p := owed(t)
	r := p.region(numbered(100), remoteAll)
	p.closeOrderly()
	p.advance(rtt)
	p.Machine.RoundTrip(p.clock, rtt)
	p.send(indications[mpa.RTRWrite])
	p.advance(rtt - 1)
	p.wantLLP()
	p.send(request(1, readOf(r.STag(), 10)))
	p.want(response(5, 0, numbered(10)))
	p.advance(rtt + activeWait - 1)
	p.wantLLP()
	p.advance(1)
	p.wantLLP(Finish)

	p = owed(t, func(s *setup) { s.CloseLimit = time.Minute }) // what comes within that time is progress of the close
	r = p.region(make([]byte, 4<<20), remoteAll)
	p.closeOrderly()
	p.Machine.RoundTrip(p.clock, rtt)
	p.send(indications[mpa.RTRWrite])
	p.advance(rtt - 1)
	p.window = 0
	p.send(request(1, readOf(r.STag(), 4<<20)))
	keeps(p, func(int) { p.window = 4 << 10 })
	if got := p.clock.Sub(epoch).Round(time.Second); got != time.Minute {
		t.Errorf("waited for %v: %v", got, p.Machine.Cause())
	}
}

// What was known when the close began stands, a close that has yet to begin learns nothing, and where the peer may not
// read there is nothing to wait for.
func TestQuietLearnsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		begin  func(p *peer)
		change func(*setup)
		held   time.Duration
	}{
		"known": {func(p *peer) { p.closeFar(); p.Machine.RoundTrip(p.clock, time.Hour) },
			func(*setup) {}, rtt + activeWait},
		"too soon": {func(p *peer) { p.Machine.RoundTrip(p.clock, time.Hour); p.closeOrderly() }, func(*setup) {}, 0},
		"no Reads": {func(p *peer) { p.closeOrderly(); p.Machine.RoundTrip(p.clock, time.Hour) },
			func(s *setup) { s.IRD = 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := owed(t, c.change)
			c.begin(p)
			p.send(indications[mpa.RTRWrite])
			if c.held > 0 {
				p.advance(c.held - 1)
				p.wantLLP()
				p.advance(1)
			}
			p.wantLLP(Finish)
		})
	}
}
