package admission

import (
	"container/list"
	"time"
)

// A Slot is the place of one connection in a [Table]. A nil Slot belongs to a connection that no Table counts.
type Slot struct {
	in *Table
	of *source

	// Guarded by in.mu.
	giveWay        func(why error)
	moving         *list.Element // nil unless something has moved of late
	moved          time.Time     // when that was
	awaitingPeer   *list.Element // nil when the peer owes nothing
	awaitingAccept *list.Element // nil when no Request waits for Accept
	order          uint64        // when it began to await its peer: the lower, the longer ago
	stays          bool          // it never gives way: see Stay
	evicted        bool
	left           bool

	out chan struct{} // closed when a Request that waits is evicted; nil while none waits
}

// gone reports whether the connection has lost its slot, or given it back.
func (p *Slot) gone() bool { return p.evicted || p.left }

// startWaiting has the connection await its peer, at once or when nothing moves any more. The caller holds the lock, as
// that of all unexported methods does, but closeVictim.
func (p *Slot) startWaiting() {
	if p.in.silence == 0 {
		p.markPending()
		return
	}
	p.moved = time.Now()
	p.moving = p.in.moving.PushBack(p)
}

// markPending puts the connection among those that await their peers, as the latest.
func (p *Slot) markPending() {
	p.in.entered++
	p.order = p.in.entered
	p.awaitingPeer = p.of.awaitingPeer.PushBack(p)
	p.in.awaitingPeer++
	p.in.rerank(p.of)
}

// markActive takes the connection from among those that may have to give way.
func (p *Slot) markActive() {
	p.stopMoving()
	if p.awaitingPeer != nil {
		p.of.awaitingPeer.Remove(p.awaitingPeer)
		p.awaitingPeer = nil
		p.in.awaitingPeer--
		p.in.rerank(p.of)
	}
}

func (p *Slot) stopMoving() {
	if p.moving != nil {
		p.in.moving.Remove(p.moving)
		p.moving = nil
	}
}

// leaveAccept has the Request wait for Accept no longer.
func (p *Slot) leaveAccept() {
	if p.awaitingAccept != nil {
		p.of.awaitingAccept.Remove(p.awaitingAccept)
		p.awaitingAccept, p.out = nil, nil // the channel need not last as long as the Slot
		p.in.awaitingAccept--
		p.in.rerank(p.of)
	}
}

// evict takes the slot away. The caller then ends the connection, by end.
func (p *Slot) evict() {
	p.in.leaving++
	out := p.out
	p.release()
	p.evicted = true
	if out != nil {
		close(out)
	}
}

// release takes the connection out of all counts.
func (p *Slot) release() {
	p.leaveAccept()
	p.markActive()
	p.in.all--
	if !p.stays {
		p.unshare()
	}
}

// share counts the connection to its source.
func (p *Slot) share() {
	p.of.all++
	p.in.sources[p.of.prefix] = p.of
}

// unshare counts the connection to its source no more. A source that has none is forgotten.
func (p *Slot) unshare() {
	if p.of.all--; p.of.all == 0 {
		delete(p.in.sources, p.of.prefix)
	}
}

// closeVictim has the connection of a victim, if there is one, give way.
func (p *Slot) closeVictim() {
	if p == nil {
		return
	}
	p.in.mu.Lock()
	giveWay := p.giveWay
	p.giveWay = nil
	p.in.mu.Unlock()
	giveWay(p.in.why)
}

// Arrived says that the Request is here, or that it will not come: then it calls failed. It reports false, and calls
// nothing, if the connection was evicted.
func (p *Slot) Arrived(failed func()) bool {
	return p.change(func() {
		failed()
		p.markActive()
	})
}

// AwaitAccept has the Request wait for Accept. The channel is closed if the connection is evicted.
func (p *Slot) AwaitAccept() <-chan struct{} {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.out = make(chan struct{})
	p.awaitingAccept = p.of.awaitingAccept.PushBack(p)
	p.in.awaitingAccept++
	p.in.rerank(p.of)
	return p.out
}

// Accepted says that Accept has taken the Request. It reports false if the connection was evicted.
func (p *Slot) Accepted() bool {
	return p.change(p.leaveAccept)
}

// AwaitPeer counts the connection as half-open again, after its Request was answered, while the peer owes something
// else. If there is no room, another is evicted for it. The connection itself is never refused, as the consumer has
// accepted it.
func (p *Slot) AwaitPeer() {
	var victim *Slot
	p.change(func() {
		victim, _ = p.in.room(p.of)
		p.markPending()
	})
	victim.closeVictim()
}

// Established says how the connection gives way from now on. It reports false if the connection was evicted.
func (p *Slot) Established(giveWay func(why error)) bool {
	return p.change(func() { p.giveWay = giveWay })
}

// Heard says that the peer has sent what it owed: the connection is half-open no more. It reports false if the
// connection was evicted.
func (p *Slot) Heard() bool {
	return p.change(p.markActive)
}

// Moved says that something has moved on the connection.
func (p *Slot) Moved() {
	p.change(p.move)
}

func (p *Slot) move() {
	if !p.stays {
		p.markActive()
		p.startWaiting()
	}
}

// Stay has the connection keep its place, whether something moves or not, or ends that. One that stays does not count
// to the share of its source.
func (p *Slot) Stay(stays bool) {
	p.change(func() {
		switch was := p.stays; {
		case stays && !was:
			p.markActive()
			p.unshare()
		case was && !stays:
			p.of = p.in.source(p.of.prefix)
			p.share()
		}
		p.stays = stays
		p.move()
	})
}

// change changes something of a connection that has its slot. It reports whether the connection was not evicted.
func (p *Slot) change(f func()) bool {
	if p == nil {
		return true
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !p.gone() {
		f()
	}
	return !p.evicted
}

// Leave gives the slot back, or says that a connection that was evicted has ended. It may be called again.
func (p *Slot) Leave() {
	if p == nil {
		return
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	switch {
	case p.left:
	case p.evicted: // closeVictim has the connection give way, now or soon
		p.in.leaving--
	default:
		p.release()
		p.giveWay = nil
	}
	p.left = true
}
