package transfer

import (
	"net"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
)

// shares say how much of a server's memory the clients of each source have: half of it together at most, so that one
// address alone leaves something to others.
type shares struct {
	most int64 // of one source; 0: any

	mu   sync.Mutex
	used map[netip.Prefix]int64
}

func newShares(all int64) *shares {
	return &shares{most: all / 2, used: make(map[netip.Prefix]int64)}
}

// A share is what one client has of them. A nil share is of memory that has no others.
type share struct {
	of     *shares
	source netip.Prefix // invalid: nobody knows

	// Guarded by of.mu.
	kept, used int64 // bytes: those that it keeps in any case, and those that it has taken
}

// share is that of the clients at an address.
func (s *shares) share(from net.Addr) *share { return &share{of: s, source: admission.SourceOf(from)} }

// keep has the client find so many bytes later, or none any more if that is 0. The error wraps iwarp.ErrLimit.
func (s *share) keep(n int) error {
	return s.change(func(s *share) { s.kept = int64(n) })
}

// reserve reserves so many bytes. The error wraps iwarp.ErrLimit.
func (s *share) reserve(n int) error {
	return s.change(func(s *share) { s.used += int64(n) })
}

// give gives so many bytes back.
func (s *share) give(n int) {
	_ = s.change(func(s *share) { s.used -= int64(n) }) // less is never too much
}

// change changes the share, or nothing if there is no room for it.
func (s *share) change(f func(*share)) error {
	if s == nil || s.of.most <= 0 || !s.source.IsValid() {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	before := *s
	f(s)
	more, used := max(s.kept, s.used)-max(before.kept, before.used), s.of.used[s.source]
	if more > s.of.most-used {
		s.kept, s.used = before.kept, before.used
		return &iwarp.LimitError{Resource: "bytes of memory for one address", Limit: s.of.most,
			Used: used, Wanted: more}
	}
	if s.of.used[s.source] = used + more; used+more == 0 {
		delete(s.of.used, s.source)
	}
	return nil
}
