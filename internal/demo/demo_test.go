package demo_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/demo"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// asked begins an owner. It returns its address, and what asks its program for its state.
func asked(t *testing.T) (addr string, look func() demo.State) {
	t.Helper()
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	questions, ask := io.Pipe()
	answers, answer := io.Pipe()
	ended := make(chan error)
	go func() { ended <- demo.Own(t.Context(), ln, questions, answer) }()
	t.Cleanup(func() {
		testrig.Must(t, ask.Close())
		testrig.Must(t, <-ended)
		testrig.Must(t, ln.Close())
	})
	lines := json.NewDecoder(answers)
	return ln.Addr().String(), func() (state demo.State) {
		_, err := io.WriteString(ask, "\n")
		testrig.Must(t, err)
		testrig.Must(t, lines.Decode(&state))
		return state
	}
}

// TestOneSided: the owner's memory has what was written, the owner counts what was done, and its program gets no
// completion.
func TestOneSided(t *testing.T) {
	addr, look := asked(t)
	w, err := demo.Dial(t.Context(), iwarp.Dialer{}, addr)
	testrig.Must(t, err)
	testrig.Must(t, w.Write(t.Context(), "hello"))
	if read, err := w.Read(t.Context(), 5); err != nil || read != "hello" {
		t.Errorf("read %q: %v", read, err)
	}
	const many = 3000 // more than may be under way, and no multiple of what is posted together
	if cost, err := w.Count(t.Context(), many); err != nil || cost.Took <= 0 {
		t.Errorf("it took %v: %v", cost.Took, err)
	}
	state := look()
	if string(state.Memory[:6]) != "3000\x00\x00" || state.Writes != many+1 || state.Reads != 2 || state.Completions != 0 {
		t.Errorf("the owner has %+v", state)
	}
	testrig.Must(t, w.Close())
}

// TestTooFar: a Write beyond the memory ends the connection, and changes nothing. The next connection is served.
func TestTooFar(t *testing.T) {
	addr, look := asked(t)
	for range 2 {
		w, err := demo.Dial(t.Context(), iwarp.Dialer{}, addr)
		testrig.Must(t, err)
		testrig.Must(t, w.Write(t.Context(), "full to the brim"))
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		refused, err := w.TooFar(soon)
		if err != nil || refused.Code != 0x1101 {
			t.Errorf("refused by %v: %v", refused, err)
		}
		_ = w.Close()
		if got := string(look().Memory); got != "full to the brim" {
			t.Errorf("the memory has %q", got)
		}
	}
}
