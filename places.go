package iwarp

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp/internal/origin"
)

// places are the connections of a Listener, by the address that they come from. They bound how many there are,
// so that what one address does costs others nothing (RFC 5042, section 6.4). [Z04]
//
// A half-open connection is silent as long as the peer owes us something: its Request, a frame after our answer,
// or its RTR indication. It waits while its Request waits for Accept. To make room for another, a silent one is closed
// first; one that waits only if its source has more than its share.
type places struct {
	halfOpen, halfOpenPerSource, perSource int // the bounds; 0 is none

	onEvict func(evictable) // is called for each connection that is closed to make room; nil: that of a QP

	mu      sync.Mutex
	sources map[netip.Prefix]*sourcePlaces
	crowd   crowd
	silent  int // connections of all sources
	waiting int
	entered uint64 // how many times a connection became silent
}

// sourcePlaces are the connections from one address.
type sourcePlaces struct {
	silent  list.List // of *place, the oldest first
	waiting list.List // the same
	all     int
	rank    int // in the crowd, from 1; 0: it has no half-open connections
}

func (s *sourcePlaces) halfOpen() int { return s.silent.Len() + s.waiting.Len() }

// An evictable is what has a place: a connection, or what comes before one.
type evictable interface {
	RemoteAddr() net.Addr
	Close() error
}

// A place is that of one connection; nil, where no Listener counts it.
type place struct {
	in   *places
	from netip.Prefix

	// Guarded by in.mu.
	conn    evictable     // what to close to make room
	qp      *QP           // or to abort, if it has come up
	silent  *list.Element // nil when the peer owes nothing
	waiting *list.Element // nil when no Request waits for Accept
	order   uint64
	evicted bool
	left    bool

	out chan struct{} // closed when a Request that waits is closed to make room; nil while none waits
}

// enter gives a connection a place, silent. If there is none, even after closing another, it returns nil.
func (ps *places) enter(c evictable) *place {
	p := &place{in: ps, from: origin.Of(c.RemoteAddr()), conn: c}
	ps.mu.Lock()
	s := ps.sources[p.from]
	if s == nil {
		s = new(sourcePlaces)
		ps.sources[p.from] = s
	}
	if p.from.IsValid() && ps.perSource > 0 && s.all >= ps.perSource {
		ps.mu.Unlock()
		return nil
	}
	victim, ok := ps.room(p.from, s)
	if ok {
		s.all++
		p.fallSilent(s)
	}
	ps.forget(p.from, s)
	ps.mu.Unlock()
	victim.end()
	if !ok {
		return nil
	}
	return p
}

// room makes room for one more half-open connection from a source, if it must by taking a place away from a
// victim, which the caller ends. It reports whether there is room then.
func (ps *places) room(from netip.Prefix, s *sourcePlaces) (victim *place, ok bool) {
	switch {
	case from.IsValid() && ps.halfOpenPerSource > 0 && s.halfOpen() >= ps.halfOpenPerSource:
		victim = oldest(&s.silent)
	case ps.halfOpen > 0 && ps.silent+ps.waiting >= ps.halfOpen:
		victim = ps.victim(s)
	default:
		return nil, true
	}
	if victim == nil {
		return nil, false
	}
	victim.takeAway()
	return victim, true
}

// takeAway takes the place away. The caller holds the lock, and ends the connection after that.
func (p *place) takeAway() {
	p.evicted = true
	p.speak()
	if p.waiting != nil {
		out := p.out
		p.stopWaiting()
		close(out)
	}
}

// victim returns the connection to close for a new one from a source, or nil: the oldest silent one of the source that
// has most half-open connections, so that where one source opens many, those that have opened few are spared,
// however long their octets take. That is the new one's own, if no other has more. A Request that waits is closed only
// where its source has more than the new one's will have.
func (ps *places) victim(own *sourcePlaces) *place {
	largest := ps.crowd.largest(own)
	switch silent := oldest(&largest.silent); {
	case largest == own, silent != nil:
		return silent
	case largest.halfOpen() > own.halfOpen()+1:
		return oldest(&largest.waiting)
	}
	return oldest(&own.silent)
}

// oldest returns the first of a list of places; nil if it is empty.
func oldest(l *list.List) *place {
	if e := l.Front(); e != nil {
		return e.Value.(*place)
	}
	return nil
}

// forget drops a source that has no connections.
func (ps *places) forget(from netip.Prefix, s *sourcePlaces) {
	if s.all == 0 {
		delete(ps.sources, from)
	}
}

func (p *place) source() *sourcePlaces { return p.in.sources[p.from] }

// fallSilent has the peer owe us something. The caller holds the lock.
func (p *place) fallSilent(s *sourcePlaces) {
	p.in.entered++
	p.order = p.in.entered
	p.silent = s.silent.PushBack(p)
	p.in.silent++
	p.in.crowd.rerank(s)
}

// speak has the peer owe nothing any more. The caller holds the lock.
func (p *place) speak() {
	if p.silent != nil {
		s := p.source()
		s.silent.Remove(p.silent)
		p.silent = nil
		p.in.silent--
		p.in.crowd.rerank(s)
	}
}

// end closes the connection of a victim, if there is one.
func (p *place) end() {
	if p == nil {
		return
	}
	p.in.mu.Lock()
	qp := p.qp
	p.in.mu.Unlock()
	if qp != nil {
		p.in.onEvict(nil)
		qp.abort(ErrEvicted)
		return
	}
	p.in.onEvict(p.conn)
	_ = p.conn.Close()
}

// evictOne closes a half-open connection to free what it holds, as if for a source that has none, and reports whether
// there was one.
func (ps *places) evictOne() bool {
	ps.mu.Lock()
	victim := ps.victim(new(sourcePlaces))
	if victim != nil {
		victim.takeAway()
	}
	ps.mu.Unlock()
	victim.end()
	return victim != nil
}

// arrived says that the Request is here, or that it will not come: then it calls failed. It reports false,
// and calls nothing, if the connection was closed to make room.
func (p *place) arrived(failed func()) bool {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.evicted {
		return false
	}
	failed()
	p.speak()
	return true
}

// wait has the Request wait for Accept. What it returns is closed if the connection is closed to make room.
func (p *place) wait() <-chan struct{} {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.out = make(chan struct{})
	s := p.source()
	p.waiting = s.waiting.PushBack(p)
	p.in.waiting++
	p.in.crowd.rerank(s)
	return p.out
}

// waited ends that. It reports false if the connection was closed to make room.
func (p *place) waited() bool {
	if p == nil {
		return true
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.waiting != nil {
		p.stopWaiting()
	}
	return !p.evicted
}

// stopWaiting has the Request wait no longer. The caller holds the lock.
func (p *place) stopWaiting() {
	s := p.source()
	s.waiting.Remove(p.waiting)
	p.waiting, p.out = nil, nil // a place lasts as long as its connection
	p.in.waiting--
	p.in.crowd.rerank(s)
}

// hold counts the connection as half-open again, after its Request was answered, while the peer owes something
// else. If there is no room, another is closed for it; the connection itself is never refused, as the consumer
// has accepted it.
func (p *place) hold() {
	if p == nil {
		return
	}
	p.in.mu.Lock()
	victim, _ := p.in.room(p.from, p.source())
	p.fallSilent(p.source())
	p.in.mu.Unlock()
	victim.end()
}

// up says which QP has the connection. It reports false if the connection was closed to make room.
func (p *place) up(qp *QP) bool {
	if p == nil {
		return true
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.qp = qp
	return !p.evicted
}

// heard says that the peer has sent what it owed. It reports false if the connection was closed to make room.
func (p *place) heard() bool {
	if p == nil {
		return true
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !p.left {
		p.speak()
	}
	return !p.evicted
}

// leave gives the place back.
func (p *place) leave() {
	if p == nil {
		return
	}
	p.waited()
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.left {
		return
	}
	p.left, p.qp = true, nil
	s := p.source()
	p.speak()
	s.all--
	p.in.forget(p.from, s)
}

// count returns how many connections are half-open, and how many of them wait for Accept.
func (ps *places) count() (halfOpen, waiting int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.silent + ps.waiting, ps.waiting
}
