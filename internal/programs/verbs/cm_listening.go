//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"sync"
)

// listening are the IDs of the process that listen, and where: another cannot be bound there.
type listening struct {
	mu    sync.Mutex
	spots map[*ID]spot
}

// A spot is what an ID is bound to. That of all addresses of IPv6 is also that of those of IPv4, but for only6.
type spot struct {
	at    netip.AddrPort
	only6 bool
}

func (l *listening) add(id *ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spots == nil {
		l.spots = make(map[*ID]spot)
	}
	l.spots[id] = spot{id.local, id.familyOnly}
}

func (l *listening) remove(id *ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.spots, id)
}

// has reports whether an ID listens at a spot, or at a part of it.
func (l *listening) has(s spot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, taken := range l.spots {
		if taken.at.Port() == s.at.Port() && (taken.covers(s.at.Addr()) || s.covers(taken.at.Addr())) {
			return true
		}
	}
	return false
}

func (s spot) covers(a netip.Addr) bool {
	own := s.at.Addr()
	return own == a || own.IsUnspecified() && (own.Is4() == a.Is4() || own.Is6() && !s.only6)
}
