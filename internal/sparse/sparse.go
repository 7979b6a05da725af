// Package sparse keeps strangers from filling a log: of the records that they can cause it lets one a second through,
// and says how many others there were.
package sparse

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// every is how often a record is let through.
const every = time.Second

// LeftOut is the attribute that counts the records between one that was let through and the one before.
const LeftOut = "left_out"

// A Handler passes on the first record at once. Of those that follow within a second it passes on the last, when that
// second is over. Handlers that WithAttrs and WithGroup make of it share the second.
type Handler struct {
	slog.Handler
	of *second
}

// New makes a Handler that passes records on to another.
func New(h slog.Handler) *Handler { return &Handler{h, new(second)} }

// A second is what has come since a record was passed on.
type second struct {
	mu      sync.Mutex
	timer   *time.Timer // nil: a second has passed, and nothing has come
	waiting int
	last    slog.Record
	to      slog.Handler  // that of the last
	passing chan struct{} // closed once the record of an earlier second is passed on; nil if there was none
}

// Handle passes a record on, or keeps it. An error is that of the other Handler; it has none of records that are kept.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if h.of.keep(r, h.Handler) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// keep reports whether a record waits for the end of the second. If not, one begins.
func (s *second) keep(r slog.Record, to slog.Handler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(every, s.over)
		return false
	}
	s.waiting++
	s.last, s.to = r.Clone(), to
	return true
}

// over ends a second, and begins another if something has come in it.
func (s *second) over() { s.flush(true) }

// flush passes on what is kept. It returns after the record of an earlier second has been passed on, too: a program
// that ends then has logged everything.
func (s *second) flush(again bool) {
	s.mu.Lock()
	r, to, n, earlier := s.last, s.to, s.waiting, s.passing
	passed := make(chan struct{})
	s.timer, s.waiting, s.last, s.to, s.passing = nil, 0, slog.Record{}, nil, passed
	if n > 0 && again {
		s.timer = time.AfterFunc(every, s.over)
	}
	s.mu.Unlock()
	defer close(passed)
	if earlier != nil {
		<-earlier
	}
	if n > 1 {
		r.AddAttrs(slog.Int(LeftOut, n-1))
	}
	if n > 0 {
		_ = to.Handle(context.Background(), r) // who logged it has gone on
	}
}

// Flush passes on what is kept, at the end of what logs. Nothing is on its way any more when it returns.
func (h *Handler) Flush() {
	h.of.mu.Lock()
	if h.of.timer != nil {
		h.of.timer.Stop()
	}
	h.of.mu.Unlock()
	h.of.flush(false)
}

// WithAttrs is that of the other Handler, within the same second.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.of}
}

// WithGroup is that of the other Handler, within the same second.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.of}
}
