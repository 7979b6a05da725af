package rig

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
)

// EndsOnce returns a context that is canceled once something is there.
func EndsOnce(t *testing.T, there func() bool) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for !there() && ctx.Err() == nil {
			time.Sleep(100 * time.Microsecond)
		}
		cancel()
	}()
	return ctx
}

// MustPanic calls f, and recovers from its panic as a server does that serves others.
func MustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("did not panic")
		}
	}()
	f()
}

// Canceled returns a context that is over: what waits with it tells whether it would have waited.
func Canceled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Stacks returns the stacks of all goroutines.
func Stacks() string {
	for b := make([]byte, 1<<20); ; b = make([]byte, 2*len(b)) {
		if n := runtime.Stack(b, true); n < len(b) {
			return string(b[:n])
		}
	}
}

// Outcome returns what a wait comes to.
func Outcome(t *testing.T, waiting <-chan error) error {
	t.Helper()
	select {
	case err := <-waiting:
		return err
	case <-Within(t).Done():
		t.Fatalf("the wait does not end\n%s", Stacks())
		return nil
	}
}

// WantSaid expects an error that has words in it, and wraps another.
//
//housecheck:texts A test may look.
func WantSaid(t *testing.T, what string, err, wraps error, words ...string) {
	t.Helper()
	if !errors.Is(err, wraps) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v: says nothing of %q", what, err, w)
		}
	}
}

// WantEndAfter waits for the end of a connection, and says when and why it has to come.
func WantEndAfter(t *testing.T, qp *iwarp.QP, after time.Duration, cause error) {
	t.Helper()
	began := time.Now()
	<-qp.Done()
	if took := time.Since(began); took != after || !errors.Is(qp.Err(), cause) ||
		!errors.Is(qp.Err(), os.ErrDeadlineExceeded) {
		t.Errorf("ended after %v with %v, want %v and %v", took, qp.Err(), after, cause)
	}
	_ = qp.Close()
}
