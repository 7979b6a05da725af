package rig

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// noPeer is the one message of a moment at which no peer is known.
const noPeer = "iwarp: cannot accept a TCP connection now"

// A Listening is a log handler that wants both addresses in every record.
type Listening struct {
	T    *testing.T
	mu   sync.Mutex
	Said map[string]bool
}

// Hear takes a record, and reports one without addresses.
func (l *Listening) Hear(r slog.Record) {
	told := map[string]string{}
	r.Attrs(func(a slog.Attr) bool { told[a.Key] = a.Value.String(); return true })
	unconnected := told["from"] == "Idle" && told["to"] == "Error" // a QP that is given up without a connection
	if !unconnected && (told["local"] == "" || told["peer"] == "" && r.Message != noPeer) {
		l.T.Errorf("%q has no addresses: %v", r.Message, told)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Said[r.Message] = true
}

// Has reports whether a message with that beginning was logged.
func (l *Listening) Has(beginning string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for said := range l.Said {
		if strings.HasPrefix(said, beginning) {
			return true
		}
	}
	return false
}

// A LogHandler is a log handler that is a function.
type LogHandler func(r slog.Record)

// Enabled wants all records.
func (h LogHandler) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs keeps nothing.
func (h LogHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup keeps nothing.
func (h LogHandler) WithGroup(string) slog.Handler { return h }

// Handle calls the function.
func (h LogHandler) Handle(_ context.Context, r slog.Record) error { h(r); return nil }
