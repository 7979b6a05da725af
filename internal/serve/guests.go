package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	// minSilence is how long nothing has moved on a connection that may have to give way.
	minSilence = time.Second
	// maxLeaving bounds the connections that have given way and have not ended yet.
	maxLeaving = 64
)

// ErrSilent is why a connection had to give way.
var ErrSilent = errors.New("serve: nothing moved on the connection, and another needed its place")

// A guest is a connection that has a place.
type guest struct {
	service string
	remote  string       // where it comes from
	source  netip.Prefix // the same, as one that others may come from too; invalid: nobody knows
	leave   context.CancelCauseFunc
	octets  uint64    // that have moved, when that was looked at last
	moved   time.Time // when it was seen that some have
}

// sourceOf is the part of an address that counts as one source, as for a Listener: an IPv4 address, or the 64 bits that a host of IPv6 has for itself.
func sourceOf(a net.Addr) netip.Prefix {
	at, _ := netip.ParseAddrPort(a.String())
	ip := at.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}

// perSource is how many places the connections of one source may have: three quarters, so that it alone shuts nobody out.
func (s *Server) perSource() int { return s.cfg.MaxConnections - s.cfg.MaxConnections/4 }

// enter gives a connection a place, if need be that of the most silent one. The error says why there is none.
func (s *Server) enter(g *guest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(g.source); err != nil {
		return err
	}
	g.moved = time.Now()
	s.guests[g] = true
	s.change(g.service, func(c *ServiceStats) { c.Connections++ })
	return nil
}

// room makes room for a connection from a source. The caller holds mu.
func (s *Server) room(source netip.Prefix) error {
	most, same := s.cfg.MaxConnections, 0
	for g := range s.guests {
		if g.source == source && source.IsValid() {
			same++
		}
	}
	switch {
	case most <= 0:
		return nil
	case same >= s.perSource():
		if s.evict(func(g *guest) bool { return g.source == source }) {
			return nil
		}
		return fmt.Errorf("iwarp serve: there are %d connections from your address already: try again later", same)
	case len(s.guests) < most || s.evict(func(*guest) bool { return true }):
		return nil
	}
	return fmt.Errorf("iwarp serve: there are %d connections already: try again later", most)
}

// evict takes a place away: of those on which nothing has moved for a while, one of the source that has most of them, and of these the one that
// has been silent longest. The caller holds mu.
func (s *Server) evict(which func(*guest) bool) bool {
	if s.stats.Connections()-len(s.guests) >= maxLeaving {
		return false
	}
	var silent []*guest
	from := make(map[netip.Prefix]int)
	for g := range s.guests {
		from[g.source]++
		if which(g) && time.Since(g.moved) >= minSilence {
			silent = append(silent, g)
		}
	}
	var victim *guest
	for _, g := range silent {
		if victim == nil || from[g.source] > from[victim.source] || from[g.source] == from[victim.source] && g.moved.Before(victim.moved) {
			victim = g
		}
	}
	if victim == nil {
		return false
	}
	delete(s.guests, victim)
	victim.leave(ErrSilent)
	return true
}

// left has a connection that has ended give back its place.
func (s *Server) left(g *guest, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.guests, g)
	s.change(g.service, func(c *ServiceStats) {
		c.Connections--
		switch {
		case errors.Is(err, ErrSilent):
			c.GaveWay++
		case err != nil:
			c.Failed++
		default:
			c.Ended++
		}
	})
}

// watch looks from time to time at what moves, until the context ends.
func (s *Server) watch(ctx context.Context, rnic *iwarp.RNIC) {
	again := time.NewTicker(minSilence)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-again.C:
			s.look(rnic, now)
		}
	}
}

// look finds out on which connections something has moved.
func (s *Server) look(rnic *iwarp.RNIC, now time.Time) {
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
			g.octets, g.moved = n, now
		}
	}
}
