package admission

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Silence is how long nothing has moved on a server's connection that may have to give way.
const Silence = time.Second

// maxLeaving bounds a server's connections that have given way and have not ended yet.
const maxLeaving = 64

// These say why a connection gives way.
var (
	ErrEvicted = errors.New("closed half-open to make room for another connection")
	ErrSilent  = errors.New("nothing moved on the connection, and another needed its place")
)

// A FullError says why a connection gets no place.
type FullError struct {
	Connections int  // how many there are
	Same        bool // only those of the newcomer's source were counted
}

// Error is for the peer that is rejected: it says what that can do.
func (e *FullError) Error() string {
	from := ""
	if e.Same {
		from = " from your address"
	}
	return fmt.Sprintf("%s%s already: try again later", wording.Count(e.Connections, "connection"), from)
}

// bounds limit the connections of a Table; 0 is no bound. A newcomer beyond the share of its source takes the place of
// another of that source. A newcomer beyond perSource gets no place.
type bounds struct {
	all, share              int // connections, and those of one source
	halfOpen, halfOpenShare int // those of them that are half-open
	perSource               int
	leaving                 int // connections that have given way and have not ended
}

// HalfOpenBounds are the bounds of a Listener; 0 is none.
type HalfOpenBounds struct {
	HalfOpen          int // half-open connections of all sources
	HalfOpenPerSource int // of them, those of one source
	PerSource         int // connections of one source, established ones too
}

// A Table has the connections of a Listener or a server, by source. It bounds how many there are, so that what one
// source does costs others nothing (RFC 5042, section 6.4).
//
// A connection is half-open while it awaits its peer or Accept.
type Table struct {
	bounds  bounds
	silence time.Duration // how long nothing moves on a connection until it awaits its peer; 0: it does at once
	why     error         // why a connection gives way

	mu      sync.Mutex
	sources map[netip.Prefix]*source
	queue   fairQueue[*source] // those that have half-open connections
	// of *Slot: those on which something has moved of late, the last to move at the end
	moving         list.List
	all            int // connections of all sources
	awaitingPeer   int
	awaitingAccept int
	leaving        int
	entered        uint64 // how many times a connection began to await its peer
}

// A source has the connections from one address.
type source struct {
	standing[*source] // size is how many of them are half-open
	prefix            netip.Prefix
	awaitingPeer      list.List // of *Slot, the oldest first
	awaitingAccept    list.List // the same
	all               int       // without those that stay
}

// NewHalfOpenTable makes the Table of a Listener. A connection that gets a slot there awaits its peer: the peer owes us
// its Request, and may owe a frame after our answer, or its RTR indication. It may give way at once, for ErrEvicted.
func NewHalfOpenTable(b HalfOpenBounds) *Table {
	half := bounds{halfOpen: b.HalfOpen, halfOpenShare: b.HalfOpenPerSource, perSource: b.PerSource}
	return newTable(half, 0, ErrEvicted)
}

// NewServerTable makes the Table of a server that serves so many connections at a time, and three quarters of them from
// one source at most; with 0 there is no bound. A connection on which nothing has moved for a while, which is [Silence]
// but in tests, may have to give way, for ErrSilent.
func NewServerTable(most int, silence time.Duration) *Table {
	return newTable(bounds{all: most, share: most - most/4, leaving: maxLeaving}, silence, ErrSilent)
}

func newTable(b bounds, silence time.Duration, why error) *Table {
	return &Table{bounds: b, silence: silence, why: why, sources: make(map[netip.Prefix]*source)}
}

// reached reports whether there are as many as a bound allows.
func reached(n, bound int) bool { return bound > 0 && n >= bound }

// Enter gives a connection from an address a slot, if need be that of another. The table calls giveWay,
// in a goroutine of another connection and without a lock, if this one has to give way in its turn. The error is a
// *FullError.
func (t *Table) Enter(from net.Addr, giveWay func(why error)) (*Slot, error) {
	prefix := SourceOf(from)
	t.mu.Lock()
	s := t.source(prefix)
	victim, full := t.admit(s)
	if full != nil {
		t.mu.Unlock()
		return nil, full
	}
	p := &Slot{in: t, of: s, giveWay: giveWay}
	t.all++
	p.share()
	p.startWaiting()
	t.mu.Unlock()
	victim.closeVictim()
	return p, nil
}

// source returns the source with a prefix: a new one, without connections, if the Table has none.
func (t *Table) source(prefix netip.Prefix) *source {
	if s := t.sources[prefix]; s != nil {
		return s
	}
	return newSource(prefix)
}

func newSource(prefix netip.Prefix) *source {
	s := &source{prefix: prefix}
	s.who = s
	return s
}

// admit makes room for one more connection of a source, as room does.
//
// RFC 5042, section 6.4.1: "detect if a Remote Peer is attempting to launch a DOS attack by attempting to create an
// excessive number of Streams (with associated resources) and take corrective action (such as refusing the
// request". [Z04]
func (t *Table) admit(s *source) (victim *Slot, full error) {
	if s.prefix.IsValid() && reached(s.all, t.bounds.perSource) {
		return nil, &FullError{s.all, true}
	}
	return t.room(s)
}

// room makes room for one more of a source. If it must, it takes the slot of a victim, which the caller ends.
func (t *Table) room(s *source) (victim *Slot, full error) {
	t.markSilent()
	switch b := &t.bounds; {
	case s.prefix.IsValid() && (reached(s.all, b.share) || reached(int(s.size), b.halfOpenShare)):
		victim, full = oldest(&s.awaitingPeer), &FullError{s.all, true}
	case reached(t.all, b.all) || reached(t.awaitingPeer+t.awaitingAccept, b.halfOpen):
		victim, full = t.victim(s), &FullError{t.all, false}
	default:
		return nil, nil
	}
	if victim == nil || reached(t.leaving, t.bounds.leaving) {
		return nil, full
	}
	victim.evict()
	return victim, nil
}

// markSilent has those connections await their peers on which nothing has moved for a while.
func (t *Table) markSilent() {
	for p := oldest(&t.moving); p != nil && time.Since(p.moved) >= t.silence; p = oldest(&t.moving) {
		p.stopMoving()
		p.markPending()
	}
}

// victim returns the slot to take for a new one of a source, or nil: the oldest that awaits its peer, of the source
// that has most half-open connections. So where one source opens many, those that have opened few are spared, however
// long their bytes take. One that awaits Accept is taken only where its source has more than the new one's will have.
func (t *Table) victim(own *source) *Slot {
	largest := t.queue.largest(&own.standing, 0)
	switch pending := oldest(&largest.awaitingPeer); {
	case largest == own, pending != nil:
		return pending
	case largest.size > own.size+1:
		return oldest(&largest.awaitingAccept)
	}
	return oldest(&own.awaitingPeer)
}

// oldest returns the first of a list of slots; nil if it is empty.
func oldest(l *list.List) *Slot {
	if e := l.Front(); e != nil {
		return e.Value.(*Slot)
	}
	return nil
}

// rerank puts a source where it belongs after one of its connections has become half-open, or ceased to be.
func (t *Table) rerank(s *source) {
	s.size, s.since = int64(s.awaitingPeer.Len()+s.awaitingAccept.Len()), 0
	if p := oldest(&s.awaitingPeer); p != nil {
		s.since = p.order
	}
	t.queue.rerank(&s.standing)
}

// EvictOne ends a half-open connection to free what that holds: the one that would give way to a new source. It reports
// whether there was one.
func (t *Table) EvictOne() bool {
	t.mu.Lock()
	victim := t.victim(newSource(netip.Prefix{}))
	if victim != nil {
		victim.evict()
	}
	t.mu.Unlock()
	victim.closeVictim()
	return victim != nil
}

// Count returns how many connections are half-open, and how many of them await Accept.
func (t *Table) Count() (halfOpen, awaitingAccept int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.awaitingPeer + t.awaitingAccept, t.awaitingAccept
}
