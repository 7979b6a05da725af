// Package guests gives out the places of a server: to so many connections at a time, and three quarters of them to one source at most. When there are no more,
// a connection on which nothing moves gives way, unless the server has it keep its place.
package guests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/origin"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Silence is how long nothing has moved on a connection that may have to give way.
const Silence = time.Second

// maxLeaving bounds the connections that have given way and have not ended yet.
const maxLeaving = 64

// ErrSilent is why a connection had to give way.
var ErrSilent = errors.New("nothing moved on the connection, and another needed its place")

// A FullError says why a connection gets no place.
type FullError struct {
	Connections int  // that there are
	Same        bool // those of the same source are meant
}

// Error says what the one who is rejected can do.
func (e *FullError) Error() string {
	from := ""
	if e.Same {
		from = " from your address"
	}
	return fmt.Sprintf("%s%s already: try again later", wording.Count(e.Connections, "connection"), from)
}

// Places are those of one server.
type Places struct {
	most    int
	silence time.Duration

	mu      sync.Mutex
	guests  map[*Guest]bool
	leaving int // have given way, and have not left yet
}

// New returns so many places; with 0 there is no bound. A guest that has been silent for a while, which is [Silence] but in tests, may have to give way.
func New(most int, silence time.Duration) *Places {
	return &Places{most: most, silence: silence, guests: make(map[*Guest]bool)}
}

// A Guest is a connection that has a place.
type Guest struct {
	in      *Places
	source  netip.Prefix // invalid: nobody knows
	giveWay context.CancelCauseFunc

	// Guarded by in.mu.
	moved time.Time // when something moved last
	stays bool
	gone  bool // it has given way
	left  bool
}

// Enter gives a connection from an address a place, if need be that of another. giveWay is called with ErrSilent if it has to give way
// in its turn. The error is a *FullError.
func (p *Places) Enter(from net.Addr, giveWay context.CancelCauseFunc) (*Guest, error) {
	g := &Guest{in: p, source: origin.Of(from), giveWay: giveWay, moved: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.room(g.source); err != nil {
		return nil, err
	}
	p.guests[g] = true
	return g, nil
}

// perSource is how many places one source may have: three quarters, so that it alone shuts nobody out.
func (p *Places) perSource() int { return p.most - p.most/4 }

// room makes room for a connection from a source. The caller holds mu.
func (p *Places) room(source netip.Prefix) error {
	if p.most <= 0 {
		return nil
	}
	own := func(g *Guest) bool { return g.source == source && source.IsValid() && !g.stays }
	same := 0
	for g := range p.guests {
		if own(g) {
			same++
		}
	}
	switch {
	case same >= p.perSource() && !p.evict(own):
		return &FullError{same, true}
	case same < p.perSource() && len(p.guests) >= p.most && !p.evict(func(*Guest) bool { return true }):
		return &FullError{p.most, false}
	}
	return nil
}

// evict takes a place away, of one of those on which nothing has moved for a while. The caller holds mu.
func (p *Places) evict(which func(*Guest) bool) bool {
	if p.leaving >= maxLeaving {
		return false
	}
	var silent []*Guest
	from := make(map[netip.Prefix]int)
	for g := range p.guests {
		if g.stays {
			continue
		}
		from[g.source]++
		if which(g) && time.Since(g.moved) >= p.silence {
			silent = append(silent, g)
		}
	}
	victim := mostSilent(silent, from)
	if victim == nil {
		return false
	}
	delete(p.guests, victim)
	victim.gone = true
	p.leaving++
	victim.giveWay(ErrSilent)
	return true
}

// mostSilent returns the guest of the source that has most of them, and of these the one that has been silent longest; or nil.
func mostSilent(silent []*Guest, from map[netip.Prefix]int) (victim *Guest) {
	for _, g := range silent {
		if victim == nil || from[g.source] > from[victim.source] || from[g.source] == from[victim.source] && g.moved.Before(victim.moved) {
			victim = g
		}
	}
	return victim
}

// Moved says that something has moved on the connection. A nil Guest is one that needs no place.
func (g *Guest) Moved() {
	if g == nil {
		return
	}
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.moved = time.Now()
}

// Stay has the guest keep its place, whether something moves or not, or ends that. Those that stay do not count to the share of their source.
func (g *Guest) Stay(stays bool) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.stays, g.moved = stays, time.Now()
}

// Leave gives the place back. It may be called again.
func (g *Guest) Leave() {
	p := g.in
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.gone && !g.left {
		p.leaving--
	}
	g.left = true
	delete(p.guests, g)
}
