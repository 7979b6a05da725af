package transfer

import (
	"net"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/origin"
)

// shares say how much of a server's memory the clients of each source have: half of it together at most, so that one address alone leaves something to others.
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
}

// share is that of the clients at an address.
func (s *shares) share(from net.Addr) *share { return &share{of: s, source: origin.Of(from)} }

// take takes so many octets. The error wraps iwarp.ErrLimit.
func (s *share) take(n int) error {
	if s == nil || s.of.most <= 0 || !s.source.IsValid() {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	used := s.of.used[s.source]
	if int64(n) > s.of.most-used {
		return &iwarp.LimitError{Resource: "octets of memory for one address", Limit: s.of.most, Used: used, Wanted: int64(n)}
	}
	s.of.used[s.source] = used + int64(n)
	return nil
}

// give gives so many octets back.
func (s *share) give(n int) {
	if s == nil || s.of.most <= 0 || !s.source.IsValid() {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.used[s.source] -= int64(n); s.of.used[s.source] == 0 {
		delete(s.of.used, s.source)
	}
}
