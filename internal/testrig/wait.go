package testrig

import (
	"context"
	"flag"
	"os"
	"runtime/debug"
	"testing"
	"time"
)

// Soon bounds what must not take long on a loaded machine; no test waits for it unless it
// fails. Under the race detector a megabyte may take seconds where eight others are on their way.
const Soon = 4 * time.Minute

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

// Main runs the tests of a package as Run does, and ends the program.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests of a package, and returns the program's status. Each property test
// tries a quarter of rapid's usual number of inputs, unless everything is to be tried or
// -rapid.checks says how many. Nearly all that tests allocate is garbage soon, so that it
// is collected less often than usual, unless GOGC says how often.
func Run(m *testing.M) int {
	crowd()
	if !Everything() {
		_ = flag.Set("rapid.checks", "25") // a package without such tests has no such flag
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	return m.Run()
}

// crowd has more parallel tests run at once than there are processors, unless -parallel says
// how many: they wait more than they compute.
func crowd() { _ = flag.Set("test.parallel", "16") }
