package sctpudp

import "time"

// A ledger knows the cookies that have begun an association, for as long as they are good: each serves once, so that
// nobody who has recorded its COOKIE ECHO can begin the association again when it has ended. The goroutine that
// receives uses it.
type ledger struct {
	tags  map[uint32]struct{} // ours, of which each cookie has its own
	order []spending          // in which they were spent
	floor time.Duration       // cookies that were minted before are no good any more
}

type spending struct {
	tag    uint32
	minted time.Duration // as in a token
}

// maxSpent bounds what a ledger knows. A cookie that it has to forget early takes all older ones with it.
const maxSpent = 1 << 16

// spend notes a cookie.
func (l *ledger) spend(now time.Duration, s spending) {
	for len(l.order) > 0 && (len(l.order) >= maxSpent || now-l.order[0].minted > cookieLife) {
		l.floor = max(l.floor, l.order[0].minted+1)
		delete(l.tags, l.order[0].tag)
		l.order = l.order[1:]
	}
	if l.tags == nil {
		l.tags = make(map[uint32]struct{})
	}
	l.tags[s.tag] = struct{}{}
	l.order = append(l.order, s)
}

// knows reports whether a cookie is spent, or so old that nobody knows.
func (l *ledger) knows(s spending) bool {
	_, known := l.tags[s.tag]
	return known || s.minted < l.floor
}
