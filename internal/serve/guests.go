package serve

import (
	"context"
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/guests"
	"github.com/goiwarp/iwarp/internal/refuse"
)

// A guest is a connection that has a place.
type guest struct {
	*guests.Guest
	service string
	remote  string // where it comes from
	leave   context.CancelCauseFunc
	octets  uint64 // that have moved, when that was looked at last
}

// enter gives a connection to a service a place, and counts it. The error says why there is none.
func (s *Server) enter(service string, req *iwarp.Request, leave context.CancelCauseFunc) (*guest, error) {
	place, full := s.places.Enter(req.RemoteAddr(), leave)
	if full != nil {
		return nil, full
	}
	g := &guest{Guest: place, service: service, remote: req.RemoteAddr().String(), leave: leave}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guests[g] = true
	s.change(service, func(c *ServiceStats) { c.Connections++ })
	return g, nil
}

// left has a connection that has ended give back its place.
func (s *Server) left(g *guest, err error) {
	g.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.guests, g)
	s.change(g.service, func(c *ServiceStats) {
		c.Connections--
		full, rejected := (*guests.FullError)(nil), (*refuse.Error)(nil)
		switch {
		case errors.Is(err, guests.ErrSilent):
			c.GaveWay++
		case errors.As(err, &full): // of the service's own places
			s.stats.Full++
		case errors.As(err, &rejected):
			s.stats.Declined++
		case err != nil:
			c.Failed++
		default:
			c.Ended++
		}
	})
}

// watch looks from time to time at what moves, until the context ends.
func (s *Server) watch(ctx context.Context, rnic *iwarp.RNIC) {
	again := time.NewTicker(guests.Silence)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			s.look(rnic)
		}
	}
}

// look finds out on which connections something has moved.
func (s *Server) look(rnic *iwarp.RNIC) {
	octets := make(map[string]uint64)
	for _, qp := range rnic.QPs() {
		if from := qp.RemoteAddr(); from != nil {
			n := qp.Stats()
			octets[from.String()] += n.SentStream + n.ReceivedStream
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.guests {
		if n := octets[g.remote]; n != g.octets {
			g.octets = n
			g.Moved()
		}
	}
}
