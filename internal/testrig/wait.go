package testrig

import (
	"context"
	"os"
	"testing"
	"time"
)

// Soon bounds what must not take long on a loaded machine; no test waits for it unless it
// fails.
const Soon = 20 * time.Second

// Within returns a context that ends the test's waiting after Soon. It outlives the
// test's own, so that cleanups can wait, too.
func Within(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), Soon)
	tb.Cleanup(cancel)
	return ctx
}

// Everything tells whether a test of a large product is to try all of it, and not a part:
// .ci/run sets IWARP_ALL.
func Everything() bool { return os.Getenv("IWARP_ALL") != "" }
