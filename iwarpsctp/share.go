package iwarpsctp

import (
	"context"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/mpa"
)

// sharing has the associations that Dials share: Network.ShareAssociations.
type sharing struct {
	mu sync.Mutex
	to map[destination]*shared
}

// A destination is what the Dials that may share an association have in common.
type destination struct{ network, address, local string }

// shared are the associations to one destination: more than one if one has not enough streams.
type shared struct {
	turn  chan struct{} // taken by the Dial that looks for an association, or opens one
	dials int           // that have the turn, or wait for it
	open  []*association.Association
}

// openSession asks for a session in an association that is there, or else in one that open makes. The offer is one that
// can be said: Dial has checked it.
func (s *sharing) openSession(
	ctx context.Context, to destination, o mpa.Offer, open opener,
) (*association.Session, error) {
	all := s.enter(to)
	defer s.leave(to, all)
	select {
	case all.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, deadline.ContextError(ctx)
	}
	defer func() { <-all.turn }()
	for _, a := range s.list(all) {
		if session, err := a.Begin(o); err == nil {
			return session, nil
		} // else it has no stream that is free, or ends, and is about to leave the list
	}
	return s.beginAnew(to, all, o, open)
}

// An opener opens an association.
type opener func(association.Config) (*association.Association, error)

// beginAnew opens one more association, which others find then.
func (s *sharing) beginAnew(to destination, all *shared, o mpa.Offer, open opener) (*association.Session, error) {
	var a *association.Association
	up := make(chan struct{})
	a, err := open(association.Config{CloseUnused: true, Ended: func() {
		<-up
		s.remove(to, all, a)
	}})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	all.open = append(all.open, a)
	s.mu.Unlock()
	close(up)
	return a.Begin(o)
}

func (s *sharing) enter(to destination) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		s.to = make(map[destination]*shared)
	}
	all := s.to[to]
	if all == nil {
		all = &shared{turn: make(chan struct{}, 1)}
		s.to[to] = all
	}
	all.dials++
	return all
}

func (s *sharing) leave(to destination, all *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all.dials--
	s.forget(to, all)
}

func (s *sharing) list(all *shared) []*association.Association {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(all.open)
}

func (s *sharing) remove(to destination, all *shared, a *association.Association) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all.open = slices.DeleteFunc(all.open, func(other *association.Association) bool { return other == a })
	s.forget(to, all)
}

// forget drops a destination that nothing is left of. The caller holds mu.
func (s *sharing) forget(to destination, all *shared) {
	if all.dials == 0 && len(all.open) == 0 && s.to[to] == all {
		delete(s.to, to)
	}
}
