package engine

import (
	"testing"
	"time"
)

// near is the round trip of a short path.
const near = time.Microsecond

func (p *peer) closeNear() {
	p.BeginClose(p.clock, near)
	p.settle()
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
			return func() { p.send(write(stag, 0, numbered(10)).more()) }, func() { p.send(write(stag, 10, numbered(10))) }
		},
		"an FPDU": func(p *peer, stag uint32) (begin, end func()) {
			b := p.w.Append(nil, write(stag, 0, numbered(100)).ulpdu())
			return func() { p.sendOctets(b[:7]) }, func() { p.sendOctets(b[7:]) }
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
