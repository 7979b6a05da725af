package probe_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// drip answers a Request by a Reply in the time, a byte after the other.
func drip(c net.Conn) {
	_, _ = c.Read(make([]byte, 4096))
	for _, b := range startup(mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1}) {
		time.Sleep(100 * time.Millisecond)
		_, _ = c.Write([]byte{b})
	}
	_, _ = io.Copy(io.Discard, c)
}

// limited asks with a limit, and returns how long it took.
func limited(t *testing.T, limit time.Duration) (r *probe.Report, spent time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		var peers sync.WaitGroup
		defer peers.Wait()
		began := time.Now()
		r, err = probe.Run(t.Context(), probe.Config{Limit: limit, Dial: func(context.Context) (net.Conn, error) {
			ours, theirs := testrig.Pipe("probe", "peer")
			peers.Go(func() {
				defer theirs.Close()
				drip(theirs)
			})
			return ours, nil
		}})
		spent = time.Since(began)
	})
	return r, spent, err
}

// TestLimit asks a server whose bytes drip, so that each answer takes almost as long as there is for it. When the
// limit is over, what was learned by then is there, and nothing of a question that was cut short.
func TestLimit(t *testing.T) {
	const limit = 20 * time.Second
	r, spent, err := limited(t, limit)
	if spent < limit || spent > limit+2*time.Second {
		t.Errorf("it took %v", spent)
	}
	if !errors.Is(err, probe.ErrOutOfTime) || r == nil || !r.OutOfTime || !r.Incomplete {
		t.Fatalf("%+v (%v)", r, err)
	}
	for _, q := range r.Questions {
		if q.Milliseconds < 2000 {
			t.Errorf("%+v", q)
		}
	}
	if s := text(t, r); len(r.Questions) < 4 || !strings.Contains(s, "stopped: the time was over") ||
		!strings.Contains(s, "RFC 5044") {
		t.Errorf("%d questions: %s", len(r.Questions), s)
	}
}

// TestLimitAtOnce has no time for a single answer: there is nothing to report.
func TestLimitAtOnce(t *testing.T) {
	if r, _, err := limited(t, time.Second); r != nil || !errors.Is(err, probe.ErrOutOfTime) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestInterrupted ends the context in the middle of a question: what was learned before is there, and nothing of that
// question.
func TestInterrupted(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var peers sync.WaitGroup
			defer peers.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			r, err := probe.Run(ctx, probe.Config{Dial: func(context.Context) (net.Conn, error) {
				ours, theirs := testrig.Pipe("probe", "peer")
				peers.Go(func() {
					defer theirs.Close()
					drip(theirs)
				})
				return ours, nil
			}})
			if !errors.Is(err, context.DeadlineExceeded) || r == nil || !r.Interrupted || r.OutOfTime ||
				!r.Incomplete || (len(r.Questions) > 0) != (after > 0) {
				t.Fatalf("%+v (%v)", r, err)
			}
			var text, junit strings.Builder
			testrig.Must(t, errors.Join(r.Report().WriteText(&text, false), r.Report().WriteJUnit(&junit)))
			if !strings.Contains(text.String(), "stopped: interrupted") || len(r.NotAsked) == 0 ||
				!strings.Contains(text.String(), "as there was an interrupt: ") || r.Preset != "" || len(r.Resembles) > 0 ||
				!strings.Contains(junit.String(), `failures="0" errors="0"`) {
				t.Errorf("%s%s", text.String(), junit.String())
			}
		})
	}
}

// TestInterruptedMidway interrupts the questions to a peer that answers them: the report names those that are left, and
// concludes nothing that takes all answers.
func TestInterruptedMidway(t *testing.T) {
	for n := 1; n < 20; n += 5 {
		ctx, interrupt := context.WithCancel(t.Context())
		begun := 0
		r, err := probe.Run(ctx, probe.Config{Addr: responder{}.listen(t), Progress: func(string) {
			if begun++; begun > n {
				interrupt()
			}
		}})
		interrupt()
		if !errors.Is(err, context.Canceled) || !r.Interrupted || len(r.Questions) == 0 || len(r.Questions) > n || len(r.NotAsked) < 5 {
			t.Fatalf("after %d questions: %v: %d asked, not asked %q", n, err, len(r.Questions), r.NotAsked)
		}
		shown := text(t, r)
		if len(r.Resembles) > 0 || strings.Contains(shown, "preset is needed") || !strings.Contains(shown, "Not asked") ||
			!strings.Contains(shown, "Little follows from this, as not all was asked") {
			t.Errorf("after %d questions:\n%s", n, shown)
		}
	}
}
