package usertcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// A Path says what happens to packets in one direction of a [Pipe]. What happens to the nth packet follows from the
// Seed and n alone. The zero value carries everything at once and in order.
type Path struct {
	// Seed of the random decisions.
	Seed uint64
	// Loss, Duplicate and Reorder are the shares of packets, from 0 to 1, that are lost, arrive twice, and arrive late.
	Loss, Duplicate, Reorder float64
	// Delay is what each packet takes. A late one, and the second of two, take up to Late more, which is 2*Delay if it
	// is zero.
	Delay, Late time.Duration
	// Rate is the bandwidth in bytes per second; zero: as fast as it goes.
	Rate int64
	// Queue is how many packets may be under way: one more is lost. Zero: any number.
	Queue int
}

// check reports what is out of range.
func (p *Path) check() error {
	for name, share := range map[string]float64{"Loss": p.Loss, "Duplicate": p.Duplicate, "Reorder": p.Reorder} {
		if !(share >= 0 && share <= 1) { // it may be NaN
			return fmt.Errorf("a Path with %s %v: the share is from 0 to 1", name, share)
		}
	}
	if p.Delay < 0 || p.Late < 0 || p.Rate < 0 || p.Queue < 0 {
		return errors.New("a Path with a negative Delay, Late, Rate or Queue")
	}
	return nil
}

// Pipe returns the ends of a link in memory, which carries packets of up to mtu bytes: from a to b as ab says, and
// back as ba does. A share above 1 counts as 1, and a negative value as 0; [Pair] refuses both.
func Pipe(mtu int, ab, ba Path) (a, b *PipeEnd) {
	there, back := newWire(ab), newWire(ba)
	return &PipeEnd{mtu: mtu, out: there, in: back}, &PipeEnd{mtu: mtu, out: back, in: there}
}

// A PipeEnd is one end of a [Pipe]: a [Link].
type PipeEnd struct {
	mtu     int
	in, out *wire
}

// MTU returns what Pipe was given.
func (e *PipeEnd) MTU() int { return e.mtu }

// Send sends a packet to the other end.
func (e *PipeEnd) Send(packet []byte) { e.out.send(packet) }

// Receive delivers what the other end has sent, until Close of this one.
func (e *PipeEnd) Receive(deliver func(packet []byte)) error {
	e.in.run(deliver)
	return nil
}

// Close ends receiving. What the other end sends from now on is lost.
func (e *PipeEnd) Close() error {
	e.in.close()
	return nil
}

// Sent returns what became of the packets that this end has sent.
func (e *PipeEnd) Sent() PathStats {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	return e.out.stats
}

// PathStats counts packets in one direction.
type PathStats struct {
	Packets    int // sent
	Lost       int // by Loss
	Overflowed int // lost for want of room in the Queue
	Late       int // by Reorder
	Duplicated int
}

// A fate is what a Path does to one packet.
type fate struct {
	lost, twice bool
	late        time.Duration // zero: not late
	second      time.Duration // how much later the second of two is
}

// fates draws what becomes of one packet after the other. It takes as many numbers for each, so that what becomes of
// one does not depend on the shares that others fall under.
type fates struct {
	path Path
	rand *rand.Rand
}

func newFates(p Path) fates {
	if p.Late == 0 {
		p.Late = 2 * p.Delay
	}
	return fates{path: p, rand: rand.New(rand.NewPCG(p.Seed, 0x6d7061))}
}

func (f *fates) next() (it fate) {
	lost, twice, late := f.rand.Float64(), f.rand.Float64(), f.rand.Float64()
	by, second := f.rand.Float64(), f.rand.Float64()
	it.lost = lost < f.path.Loss
	it.twice = twice < f.path.Duplicate
	it.second = time.Duration(second * float64(f.path.Late))
	if late < f.path.Reorder {
		it.late = max(1, time.Duration(by*float64(f.path.Late)))
	}
	return it
}
