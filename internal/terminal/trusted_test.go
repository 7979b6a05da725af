package terminal

import (
	"errors"
	"strings"
	"testing"
)

// TestTrusted: text of the program's own passes as it is, between what is escaped.
func TestTrusted(t *testing.T) {
	var out strings.Builder
	g := NewGuard(&out)
	for _, write := range []func() (int, error){
		func() (int, error) { return g.Write([]byte("\x1b[1mpeer\n")) },
		func() (int, error) { return g.Trusted().Write([]byte("\x1b[1mours\x1b[0m\n")) },
	} {
		if _, err := write(); err != nil {
			t.Error(err)
		}
	}
	if got, want := out.String(), "\\u001b[1mpeer\n\x1b[1mours\x1b[0m\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestTrustedFails: the end tells that a write has failed.
func TestTrustedFails(t *testing.T) {
	g := NewGuard(full{})
	if _, err := g.Trusted().Write([]byte("x")); !errors.Is(err, errFull) || !errors.Is(g.Flush(), errFull) {
		t.Errorf("%v, and in the end %v", err, g.Flush())
	}
}
