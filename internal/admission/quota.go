package admission

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/engine"
)

// An OverLimit makes the error for a request that would exceed a limit, while so much is in use.
type OverLimit func(limit, used, wanted int64) error

// A Quota bounds what all connections of an RNIC hold ahead of order, by source. A source that has little of it does
// not suffer from one that has much: when there is no room, the source that holds most loses the connection with most.
type Quota struct {
	limit int64
	over  OverLimit

	mu      sync.Mutex
	used    int64
	sources map[string]*holder // those that hold something
	queue   fairQueue[*holder]
}

// NewQuota returns a quota of limit bytes; with 0, or less, there is no bound.
func NewQuota(limit int64, over OverLimit) *Quota {
	return &Quota{limit: limit, over: over, sources: make(map[string]*holder)}
}

// A holder is a source, whose size is in bytes.
type holder struct {
	standing[*holder]
	shares map[*share]struct{} // those that are not empty
}

// A share is what one connection holds. It is its engine.Budget.
type share struct {
	of      *Quota
	source  string
	giveWay func(why error)
	bytes   int64 // guarded by of.mu, as is what follows
	ended   bool  // it gives way: nothing of it counts any more
}

// Share returns the budget of a connection with a peer, nil if there is no bound. The quota calls giveWay, in a
// goroutine of its own, if the connection has to give way.
func (q *Quota) Share(peer net.Addr, giveWay func(why error)) engine.Budget {
	if q.limit <= 0 {
		return nil
	}
	return &share{of: q, source: sourceText(peer), giveWay: giveWay}
}

// sourceText names the source of a peer; a peer without an IP address is its own.
func sourceText(peer net.Addr) string {
	if p := SourceOf(peer); p.IsValid() {
		return p.String()
	}
	if peer == nil {
		return ""
	}
	return peer.String()
}

// Take takes bytes, for which another connection may have to give way.
func (h *share) Take(bytes int) error {
	q, wanted := h.of, int64(bytes)
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.ended || !q.room(h, wanted) {
		return q.over(q.limit, q.used, wanted)
	}
	h.add(wanted)
	return nil
}

// room has other connections give way to a share until it can have what it wants. It reports whether it can.
func (q *Quota) room(taker *share, wanted int64) bool {
	for q.used+wanted > q.limit {
		largest := q.largest(taker, wanted)
		if largest == taker {
			return false
		}
		go largest.giveWay(q.over(q.limit, q.used, wanted)) // which takes locks that the caller may have
		largest.add(-largest.bytes)
		largest.ended = true
	}
	return true
}

// Give gives bytes back.
func (h *share) Give(bytes int) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if !h.ended {
		h.add(-int64(bytes))
	}
}

// holder returns the source of a share, which holds nothing if it is new.
func (h *share) holder() *holder {
	if s := h.of.sources[h.source]; s != nil {
		return s
	}
	s := &holder{shares: make(map[*share]struct{})}
	s.who = s
	return s
}

// add counts bytes, which are negative when they are given back.
func (h *share) add(bytes int64) {
	q, s := h.of, h.holder()
	q.used, s.size, h.bytes = q.used+bytes, s.size+bytes, h.bytes+bytes
	q.queue.rerank(&s.standing)
	q.sources[h.source], s.shares[h] = s, struct{}{}
	if h.bytes == 0 {
		delete(s.shares, h)
	}
	if s.size == 0 {
		delete(q.sources, h.source)
	}
}

// largest returns the share whose connection gives way so that taker gets what it wants: taker, if none holds more.
func (q *Quota) largest(taker *share, wanted int64) (largest *share) {
	own, bytes := taker.holder(), int64(0)
	source := q.queue.largest(&own.standing, wanted)
	if source == own {
		largest, bytes = taker, taker.bytes+wanted
	}
	for h := range source.shares {
		if h.bytes > bytes {
			largest, bytes = h, h.bytes
		}
	}
	return largest
}

// An EarlyQuota bounds what all connections of an RNIC hold of early segments: bytes that their TCP shows ahead of
// order. No connection gives way: what has none comes again in order. It is the engine.Budget of all of them.
type EarlyQuota struct {
	limit int64
	over  OverLimit
	used  atomic.Int64
}

// NewEarlyQuota returns a quota of limit bytes; with 0, or less, there is no bound.
func NewEarlyQuota(limit int64, over OverLimit) *EarlyQuota {
	return &EarlyQuota{limit: limit, over: over}
}

// Budget returns the quota, nil if there is no bound.
func (q *EarlyQuota) Budget() engine.Budget {
	if q.limit <= 0 {
		return nil
	}
	return q
}

// Take takes bytes.
func (q *EarlyQuota) Take(bytes int) error {
	if used := q.used.Add(int64(bytes)); used > q.limit {
		q.used.Add(-int64(bytes))
		return q.over(q.limit, used-int64(bytes), int64(bytes))
	}
	return nil
}

// Give gives bytes back.
func (q *EarlyQuota) Give(bytes int) { q.used.Add(-int64(bytes)) }
