package engine

import (
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
)

// A pair is two QPs and the TCP connection between them, without a socket.
type pair struct {
	rapid.TB
	clock time.Time
	a, b  *host // Initiator and Responder
	ab    pipe
	ba    pipe
	// first chooses which direction goes first in a step; nil: ours.
	first func() bool
}

// A pipe is one direction: bytes on their way and how it ends.
type pipe struct {
	mail   *mail // in place of bytes, if the LLP carries whole segments
	bytes  []byte
	piece  func(n int) int // how many of n bytes arrive at once; nil: all
	fin    bool            // no bytes will follow
	ended  bool            // the receiver was told
	lost   bool            // everything vanishes
	passed int             // bytes delivered
	cut    int             // the connection is lost when so many are; negative: never
}

// newPair connects two QPs.
func newPair(t rapid.TB, change ...func(a, b *setup)) *pair {
	sa, sb := newSetup(mpa.RoleInitiator), newSetup(mpa.RoleResponder)
	for _, f := range change {
		f(sa, sb)
	}
	p := &pair{TB: t, clock: epoch, ab: pipe{cut: -1}, ba: pipe{cut: -1}}
	p.a, p.b = newHost(t, &p.clock, sa), newHost(t, &p.clock, sb)
	p.a.connect(sa)
	p.b.connect(sb)
	return p
}

// markers has markers inserted in the directions from the Initiator and from
// the Responder.
func markers(fromA, fromB bool) func(a, b *setup) {
	return func(a, b *setup) {
		a.MarkersSend, b.MarkersReceive = fromA, fromA
		b.MarkersSend, a.MarkersReceive = fromB, fromB
	}
}

// both applies a change to either side.
func both(f func(*setup)) func(a, b *setup) {
	return func(a, b *setup) { f(a); f(b) }
}

// run lets the two talk until neither has anything to say.
func (p *pair) run() {
	p.Helper()
	for n := 0; p.step(); n++ {
		if n > 1e6 {
			p.Fatal("they never come to rest")
		}
	}
}

// step moves bytes once in each direction and reports whether anything moved.
func (p *pair) step() bool {
	if p.first != nil && p.first() {
		moved := p.move(p.b, &p.ba, p.a)
		return p.move(p.a, &p.ab, p.b) || moved
	}
	moved := p.move(p.a, &p.ab, p.b)
	return p.move(p.b, &p.ba, p.a) || moved
}

// move takes what one host has to send, and delivers one piece.
func (p *pair) move(from *host, way *pipe, to *host) bool {
	if way.mail != nil {
		return p.carry(from, way, to)
	}
	p.collect(from, way)
	if way.lost {
		way.bytes = nil
		return false
	}
	n := len(way.bytes)
	if way.piece != nil && n > 0 {
		n = min(max(way.piece(n), 1), n)
	}
	if way.cut >= 0 {
		n = min(n, way.cut-way.passed)
	}
	switch {
	case n > 0:
		way.passed += n
		b := way.bytes[:n]
		way.bytes = way.bytes[n:]
		to.input(b)
		return true
	case way.fin && len(way.bytes) == 0 && !way.ended:
		way.ended = true
		to.fin()
		return true
	}
	return false
}

// collect takes over what a host sends and what it does to the connection.
func (p *pair) collect(from *host, way *pipe) {
	if n := way.pullFrom(from); way.fin && n > 0 {
		p.Fatalf("%d bytes or segments after the FIN", n)
	}
	for _, l := range from.llp {
		switch l {
		case Finish, Drop:
			way.fin = true
		case Reset:
			p.reset(from)
		}
	}
	from.llp = nil
}

// pullFrom takes over what a host has to send.
func (w *pipe) pullFrom(from *host) int {
	if w.mail != nil {
		n := w.mail.count
		w.mail.post(from)
		return int(w.mail.count - n)
	}
	b := from.output()
	w.bytes = append(w.bytes, b...)
	return len(b)
}

// reset loses what is on its way and tells the other host.
func (p *pair) reset(from *host) {
	p.ab.lost, p.ba.lost = true, true
	to := p.a
	if from == p.a {
		to = p.b
	}
	p.lose(to)
}

// lose tells a host that its connection is lost.
func (p *pair) lose(h *host) {
	if h.Machine.InFlight() {
		h.Machine.Abandon(p.clock, h.g)
	}
	h.Machine.Failed(p.clock, errReset)
	h.collectOutputs()
	h.llp = nil
}

// cutOff stops both directions for good.
func (p *pair) cutOff() {
	p.ab.lost, p.ba.lost = true, true
	p.lose(p.a)
	p.lose(p.b)
}

// closeBoth closes in order and expects both to be Idle again.
func (p *pair) closeBoth() {
	p.Helper()
	p.a.closeOrderly()
	p.run()
	p.b.closeOrderly()
	p.run()
	p.a.wantState(Idle)
	p.b.wantState(Idle)
	if p.a.Machine.Cause() != ErrClosedHere || p.b.Machine.Cause() != ErrPeerClosed {
		p.Fatalf("causes %v and %v", p.a.Machine.Cause(), p.b.Machine.Cause())
	}
}
