package iwarp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A seat is a connection with nothing but an address.
type seat struct {
	net.Conn
	from   string
	closed bool
}

func (s *seat) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(s.from), 1))
}

func (s *seat) Close() error { s.closed = true; return nil }

// TestPlacesCount: what waits for Accept counts as half-open, of its source and of all, and is not closed to make room
// for others of its source; and a source without connections is forgotten.
func TestPlacesCount(t *testing.T) {
	evicted := 0
	listener := func(halfOpen, perSource int) *places {
		return &places{
			halfOpen: halfOpen, halfOpenPerSource: perSource, onEvict: func(evictable) { evicted++ }, sources: map[netip.Prefix]*sourcePlaces{},
		}
	}
	waiting := func(ps *places, from string) *place {
		p := ps.enter(&seat{from: from})
		p.arrived(func() {})
		p.wait()
		return p
	}
	for _, c := range []struct {
		what string
		ps   *places
		from string // of the one too many
	}{
		{"all sources", listener(2, 0), "192.0.2.1"},
		{"one source", listener(0, 2), "192.0.2.1"},
	} {
		evicted = 0
		a, b := waiting(c.ps, "192.0.2.1"), waiting(c.ps, "192.0.2.1")
		before := len(c.ps.sources)
		if p := c.ps.enter(&seat{from: c.from}); p != nil || evicted > 0 {
			t.Errorf("%s: a third place, with %d closed", c.what, evicted)
		}
		if len(c.ps.sources) != before {
			t.Errorf("%s: %d sources are kept", c.what, len(c.ps.sources))
		}
		a.waited() // accepted
		silent := c.ps.enter(&seat{from: c.from})
		if silent == nil || evicted > 0 {
			t.Fatalf("%s: no place after an Accept, %d closed", c.what, evicted)
		}
		last := c.ps.enter(&seat{from: c.from})
		if last == nil || evicted != 1 || !silent.conn.(*seat).closed {
			t.Errorf("%s: the silent one was not closed for another", c.what)
		}
		if halfOpen, accepts := c.ps.count(); halfOpen != 2 || accepts != 1 {
			t.Errorf("%s: %d half-open, %d wait for Accept", c.what, halfOpen, accepts)
		}
		for _, p := range []*place{a, b, silent, last} {
			p.leave()
		}
		if halfOpen, _ := c.ps.count(); halfOpen != 0 || len(c.ps.sources) != 0 {
			t.Errorf("%s: %d half-open, %d sources in the end", c.what, halfOpen, len(c.ps.sources))
		}
	}
}

// TestPlaceKeepsNoChannel: a place, which lasts as long as its connection, holds the channel of a Request that waits no longer than
// that waits, be it accepted or closed to make room.
func TestPlaceKeepsNoChannel(t *testing.T) {
	ps := newPlaces(0)
	p := ps.enter(&seat{from: "192.0.2.1"})
	for what, end := range map[string]func(){"Accept": func() { p.waited() }, "another that needs its room": p.takeAway} {
		if out := p.wait(); out == nil || p.out == nil {
			t.Fatalf("%s: nothing to wait for", what)
		}
		if end(); p.out != nil {
			t.Errorf("after %s the place has a channel", what)
		}
	}
}

// TestPlacesOwnFirst: where another source has as many as the new connection's own, its own makes room, though the
// other's is older.
func TestPlacesOwnFirst(t *testing.T) {
	ps := newPlaces(2)
	other, own := &seat{from: "192.0.2.1"}, &seat{from: "192.0.2.2"}
	ps.enter(other)
	ps.enter(own)
	if ps.enter(&seat{from: own.from}) == nil || other.closed || !own.closed {
		t.Errorf("closed: the other's %t, its own %t", other.closed, own.closed)
	}
}

// TestTurnedAwaySource: of a source for which there is no room nothing is kept.
func TestTurnedAwaySource(t *testing.T) {
	ps := newPlaces(1)
	p := ps.enter(&seat{from: "192.0.2.1"})
	p.arrived(func() {})
	p.wait()
	if ps.enter(&seat{from: "192.0.2.2"}) != nil || len(ps.sources) != 1 {
		t.Errorf("%d sources are known", len(ps.sources))
	}
}

// TestPlacesWithoutBounds: without bounds nobody is closed to make room.
func TestPlacesWithoutBounds(t *testing.T) {
	ps := &places{onEvict: func(evictable) { t.Error("one was closed to make room") }, sources: map[netip.Prefix]*sourcePlaces{}}
	for range 100 {
		if ps.enter(&seat{from: "192.0.2.1"}) == nil {
			t.Fatal("no place")
		}
	}
}

// TestEvictOne: the oldest silent connection is closed, each once.
func TestEvictOne(t *testing.T) {
	evicted := 0
	ps := &places{onEvict: func(evictable) { evicted++ }, sources: map[netip.Prefix]*sourcePlaces{}}
	a, b := &seat{from: "192.0.2.1"}, &seat{from: "192.0.2.1"}
	ps.enter(a)
	ps.enter(b)
	for i, want := range []struct{ one, a, b bool }{{true, true, false}, {true, true, true}, {false, true, true}} {
		one := ps.evictOne()
		if halfOpen, _ := ps.count(); one != want.one || a.closed != want.a || b.closed != want.b || halfOpen != max(1-i, 0) {
			t.Errorf("call %d: %t, closed %t and %t, %d half-open", i, one, a.closed, b.closed, halfOpen)
		}
	}
	if evicted != 2 {
		t.Errorf("%d closed", evicted)
	}
}

// TestEvictOneOfMost: of two sources the one with more silent connections loses its oldest, though the other's is older; of two
// with as many, the one whose oldest has come first.
func TestEvictOneOfMost(t *testing.T) {
	for range 20 { // sources are looked at in any order
		ps := &places{onEvict: func(evictable) {}, sources: map[netip.Prefix]*sourcePlaces{}}
		few := []*seat{{from: "192.0.2.1"}, {from: "192.0.2.2"}}
		most := []*seat{{from: "192.0.2.3"}, {from: "192.0.2.3"}, {from: "192.0.2.3"}}
		for _, s := range append(few, most...) {
			ps.enter(s)
		}
		for i, s := range []*seat{most[0], most[1], few[0], few[1], most[2]} {
			if !ps.evictOne() || !s.closed {
				t.Fatalf("call %d closed another than expected", i)
			}
		}
	}
}

// TestEvictOneThatWaits: with nothing silent it is the oldest Request that waits, of the source that has most; the only one of
// a source is spared. Accept passes over it though it was offered already.
func TestEvictOneThatWaits(t *testing.T) {
	l := newListener(testrig.NewListener("here"), ListenConfig{})
	seats := []*seat{{from: "192.0.2.1"}, {from: "192.0.2.2"}, {from: "192.0.2.2"}}
	requests, outs := make([]*Request, len(seats)), make([]<-chan struct{}, len(seats))
	for i, s := range seats {
		p := l.places.enter(s)
		p.arrived(func() {})
		requests[i], outs[i] = &Request{place: p}, p.wait()
	}
	if !l.places.evictOne() || l.places.evictOne() {
		t.Fatal("not one was closed, but none or two")
	}
	if seats[0].closed || !seats[1].closed || seats[2].closed {
		t.Fatalf("closed: %t, %t, %t", seats[0].closed, seats[1].closed, seats[2].closed)
	}
	for i, out := range outs { // who offers it to Accept does so no longer
		select {
		case <-out:
			if i != 1 {
				t.Errorf("Request %d is told to wait no longer", i)
			}
		default:
			if i == 1 {
				t.Error("the Request that was closed waits on")
			}
		}
	}
	l.ready = make(chan *Request, len(requests))
	for _, r := range requests {
		l.ready <- r
	}
	for _, want := range []*Request{requests[0], requests[2]} {
		if got, err := l.Accept(testrig.Within(t)); got != want || err != nil {
			t.Errorf("Accept: %p (%v), want %p", got, err, want)
		}
	}
	if halfOpen, waiting := l.places.count(); halfOpen != 0 || waiting != 0 || len(l.places.sources) != 2 || requests[1].place.source().all != 1 {
		t.Errorf("%d half-open, %d wait for Accept; sources: %v", halfOpen, waiting, l.places.sources)
	}
}
