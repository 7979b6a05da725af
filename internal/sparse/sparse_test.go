package sparse

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// logger is a logger over a Handler, and what has come through, without times.
func logger() (*slog.Logger, *Handler, func() string) {
	var b testrig.Buffer
	h := New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	return slog.New(h), h, func() string { return strings.TrimSpace(b.String()) }
}

// TestSparse has a thousand records in each of three seconds, over Handlers that were made of one: one a second comes
// through, with how many did not.
func TestSparse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, h, got := logger()
		same := []*slog.Logger{log, log.With("a", 1), log.WithGroup("g")}
		for i := range 3000 {
			same[i%3].Warn("came", "n", i)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		log.Warn("came", "n", "late")
		log.Warn("came", "n", "last")
		h.Flush()
		lines := strings.Split(got(), "\n")
		if sum := len(lines) + leftOut(lines); len(lines) != 6 || sum != 3002 || lines[0] != "msg=came n=0" ||
			lines[4] != "msg=came n=late" || lines[5] != "msg=came n=last" {
			t.Errorf("of 3002 records %d came and were counted:\n%s", sum, got())
		}
	})
}

// slow is a Handler that takes two seconds to write the record "second".
type slow struct{ slog.Handler }

func (h slow) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "second" {
		time.Sleep(2 * time.Second)
	}
	return h.Handler.Handle(ctx, r)
}

// TestFlushWaits flushes while the record of a second is being written: it is written when Flush returns.
func TestFlushWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b testrig.Buffer
		h := New(slow{slog.NewTextHandler(&b, nil)})
		log := slog.New(h)
		log.Warn("first")
		log.Warn("second")
		time.Sleep(1500 * time.Millisecond)
		h.Flush()
		if !strings.Contains(b.String(), "second") {
			t.Errorf("flushed, and not written: %s", b.String())
		}
	})
}

// leftOut sums up what was left out.
func leftOut(lines []string) (n int) {
	for _, line := range lines {
		if _, text, ok := strings.Cut(line, LeftOut+"="); ok {
			m, err := strconv.Atoi(text)
			if err != nil {
				return -1
			}
			n += m
		}
	}
	return n
}

// TestSeldom has records come that are more than a second apart: each is passed on at once.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _, got := logger()
		for i := range 3 {
			log.Warn("came", "n", i)
			if n := len(strings.Split(got(), "\n")); n != i+1 {
				t.Errorf("%d records have come through of %d", n, i+1)
			}
			time.Sleep(1100 * time.Millisecond)
		}
		if log.Enabled(context.Background(), slog.LevelDebug) {
			t.Error("it is enabled for more than the other Handler")
		}
	})
}
