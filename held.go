package iwarp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/origin"
)

// A heldLedger says what all connections of an RNIC hold ahead of order: Limits.HeldOctets. Who has little of it does not
// suffer from who has much: when there is no room, the source that has most of it loses the connection with most.
type heldLedger struct {
	limit int64

	mu      sync.Mutex
	used    int64
	sources map[string]*heldSource
}

// A heldSource is what the peers at one address have us hold.
type heldSource struct {
	octets int64
	shares map[*heldShare]struct{} // those that are not empty
}

// A heldShare is what one connection holds. It is its engine.Budget.
type heldShare struct {
	of     *heldLedger
	source string
	end    func(why error) // the connection
	octets int64           // guarded by of.mu, as is what follows
	ended  bool            // to make room: nothing of it counts any more
}

// A shownLedger bounds what all connections of an RNIC hold of octets that their TCP shows ahead of order. Nobody ends to make room: what has
// none comes again in order. It is the engine.Budget of all of them.
type shownLedger struct {
	limit int64
	used  atomic.Int64
}

// budget returns the ledger, nil if there is no bound.
func (l *shownLedger) budget() engine.Budget {
	if l.limit <= 0 {
		return nil
	}
	return l
}

// Take takes octets.
func (l *shownLedger) Take(octets int) error {
	if used := l.used.Add(int64(octets)); used > l.limit {
		l.used.Add(-int64(octets))
		return &LimitError{Resource: "octets shown ahead of order", Limit: l.limit, Used: used - int64(octets), Wanted: int64(octets)}
	}
	return nil
}

// Give gives octets back.
func (l *shownLedger) Give(octets int) { l.used.Add(-int64(octets)) }

// share returns that of a connection, nil if there is no bound.
func (l *heldLedger) share(peer net.Addr, end func(why error)) engine.Budget {
	if l.limit <= 0 {
		return nil
	}
	key := addrText(peer)
	if p := origin.Of(peer); p.IsValid() {
		key = p.String()
	}
	return &heldShare{of: l, source: key, end: end}
}

// Take takes octets, for which another connection may have to end.
func (h *heldShare) Take(octets int) error {
	l := h.of
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted := int64(octets)
	why := &LimitError{Resource: "octets held ahead of their turn", Limit: l.limit, Used: l.used, Wanted: wanted}
	for l.used+wanted > l.limit && !h.ended {
		most := l.most(h, wanted)
		if most == h {
			return why
		}
		most.add(-most.octets)
		most.ended = true
		go most.end(why) // which takes locks that the caller may have
	}
	if h.ended {
		return why
	}
	h.add(wanted)
	return nil
}

// Give gives octets back.
func (h *heldShare) Give(octets int) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if !h.ended {
		h.add(-int64(octets))
	}
}

// add counts octets.
func (h *heldShare) add(octets int64) {
	l := h.of
	s := l.sources[h.source]
	if s == nil {
		s = &heldSource{shares: make(map[*heldShare]struct{})}
		if l.sources == nil {
			l.sources = make(map[string]*heldSource)
		}
		l.sources[h.source] = s
	}
	l.used, s.octets, h.octets = l.used+octets, s.octets+octets, h.octets+octets
	s.shares[h] = struct{}{}
	if h.octets == 0 {
		delete(s.shares, h)
	}
	if len(s.shares) == 0 {
		delete(l.sources, h.source)
	}
}

// most returns whose connection is to end if a share gets what it wants: its own, if none has more.
func (l *heldLedger) most(taker *heldShare, wanted int64) (most *heldShare) {
	worst, octets := l.worst(taker.source, wanted), int64(0)
	if worst == taker.source {
		most, octets = taker, taker.octets+wanted
	}
	if s := l.sources[worst]; s != nil {
		for h := range s.shares {
			if h.octets > octets {
				most, octets = h, h.octets
			}
		}
	}
	return most
}

// worst returns the source that has most if one of them gets what it wants: that one, if none has more.
func (l *heldLedger) worst(taker string, wanted int64) string {
	worst, octets := taker, wanted
	if s := l.sources[taker]; s != nil {
		octets += s.octets
	}
	for key, s := range l.sources {
		if s.octets > octets {
			worst, octets = key, s.octets
		}
	}
	return worst
}

// holdsTooMuch ends a connection to make room for what others hold.
func (qp *QP) holdsTooMuch(c link, why error) {
	qp.mu.Lock()
	defer qp.unlock()
	if qp.link == c {
		qp.eng.HoldsTooMuch(time.Now(), why)
		qp.pushUnlocking()
	}
}
