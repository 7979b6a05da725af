package credits_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/credits"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// take waits for a credit in the background.
func take(ctx context.Context, c *credits.Credits) <-chan error {
	return rig.DialInBackground(nil, func() error { return c.Take(ctx) })
}

// A Take beyond the credits waits for a Give, or for the end of its context or of the connection.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true}.Connect(t)
		c := credits.New(ini.QP, 2)
		for range 2 {
			rig.Must(t, c.Take(t.Context()))
		}
		waits := take(t.Context(), c)
		synctest.Wait()
		if len(waits) > 0 || c.Left() != 0 {
			t.Fatalf("a third credit was taken of two, and %d are left", c.Left())
		}
		rig.Must(t, c.Give(1))
		rig.Must(t, <-waits)

		ctx, cancel := context.WithCancelCause(t.Context())
		waits = take(ctx, c)
		cancel(errors.ErrUnsupported)
		if err := <-waits; !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("the context was canceled: %v", err)
		}
		waits = take(t.Context(), c)
		rig.Finish(t, ini, res)
		if err := <-waits; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection has ended: %v", err)
		}
	})
}

// A peer gives back what was taken, and no more.
func TestGive(t *testing.T) {
	ini, _ := rig.Connect(t)
	c := credits.New(ini.QP, 3)
	for range 3 {
		rig.Must(t, c.Take(t.Context()))
	}
	rig.Must(t, c.Give(2))
	if c.Left() != 2 {
		t.Errorf("%d credits are left, want 2", c.Left())
	}
	if err := c.Give(-1); !errors.Is(err, iwarp.ErrInvalid) || c.Left() != 2 {
		t.Errorf("fewer than no credits: %v, and %d are left", err, c.Left())
	}
	if err := c.Give(2); !errors.Is(err, credits.ErrTooMany) || c.Left() != 3 {
		t.Errorf("2 credits for 1: %v, and %d are left", err, c.Left())
	}
}

// A credit costs no memory.
func TestNoAllocations(t *testing.T) {
	c := credits.New(new(iwarp.QP), 1)
	if n := testing.AllocsPerRun(100, func() { _ = c.Take(t.Context()); _ = c.Give(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Credits that New has not made are none, and Take and Give of them say so, as a Take without a context does.
func TestNotMade(t *testing.T) {
	var without context.Context
	ini, _ := rig.Connect(t)
	for name, err := range map[string]error{
		"nil":     (*credits.Credits)(nil).Take(t.Context()),
		"zero":    new(credits.Credits).Take(t.Context()),
		"context": credits.New(ini.QP, 1).Take(without),
	} {
		if !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	for _, c := range []*credits.Credits{nil, {}} {
		if c.Left() != 0 || !errors.Is(c.Give(1), iwarp.ErrInvalid) {
			t.Error("there are credits")
		}
	}
}
