package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
)

// A client is a connection that has a slot.
type client struct {
	*admission.Slot
	service string
	remote  string // where it comes from
	leave   context.CancelCauseFunc
	bytes   uint64 // that have moved, when that was looked at last
}

// enter gives a connection to a service a slot, and counts it. The error says why there is none.
func (s *Server) enter(service string, req *iwarp.Request, leave context.CancelCauseFunc) (*client, error) {
	slot, full := s.slots.Enter(req.RemoteAddr(), leave)
	if full != nil {
		return nil, full
	}
	c := &client{Slot: slot, service: service, remote: req.RemoteAddr().String(), leave: leave}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c] = true
	s.change(service, func(n *ServiceStats) { n.Connections++ })
	return c, nil
}

// left has a connection that has ended give back its slot.
func (s *Server) left(c *client, err error) {
	c.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.change(c.service, func(n *ServiceStats) {
		n.Connections--
		full, rejected := (*admission.FullError)(nil), (*admission.RejectedError)(nil)
		switch {
		case errors.Is(err, admission.ErrSilent):
			n.GaveWay++
		case errors.As(err, &full): // of the service's own places
			s.stats.Full++
		case errors.As(err, &rejected):
			s.stats.Declined++
		case err != nil:
			n.Failed++
		default:
			n.Ended++
		}
	})
}

// watch looks from time to time at what moves, until the context ends.
func (s *Server) watch(ctx context.Context, rnic *iwarp.RNIC) {
	again := time.NewTicker(admission.Silence)
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
	data := make(map[string]uint64)
	for _, qp := range rnic.QPs() {
		if from := qp.RemoteAddr(); from != nil {
			n := qp.Stats()
			data[from.String()] += n.SentStream + n.ReceivedStream
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		if n := data[c.remote]; n != c.bytes {
			c.bytes = n
			c.Moved()
		}
	}
}

// reject rejects a request, which is counted.
func (s *Server) reject(req *iwarp.Request, count func(*Stats), reason string) {
	s.mu.Lock()
	count(&s.stats)
	s.mu.Unlock()
	attrs := []any{"remote", req.RemoteAddr().String(), "private_data", shown(req.PrivateData())}
	if reason != "" {
		attrs = append(attrs, "reason", reason)
	}
	s.requests.Go(func() {
		wait, err := s.rejecter.BeginReject(req, []byte(reason))
		if err != nil {
			attrs = append(attrs, "not_told", err.Error())
		}
		slog.New(s.refusals).Warn("rejected", attrs...)
		if err == nil {
			wait()
		}
	})
}

// shown is the beginning of private data, for the log, which quotes it: in hex if it is no text.
func shown(b []byte) string {
	b = b[:min(len(b), 48)]
	if bytes.ContainsFunc(b, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%#x", b)
	}
	return string(b)
}
