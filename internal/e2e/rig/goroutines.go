package rig

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// Main runs the tests of a package, and fails if a goroutine of package iwarp is left when all are over.
func Main(m *testing.M) {
	code := testrig.Run(m)
	if left := leaked(Soon); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the goroutines of the package that do not end in time.
func leaked(limit time.Duration) (left string) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if left = Ours(); left == "" {
			return ""
		}
	}
	return left
}

// Ours returns the stacks of goroutines that the package has started.
func Ours() string {
	b := make([]byte, 4<<20)
	var all []string
	for stack := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		started := strings.Contains(stack, "\ngithub.com/goiwarp/iwarp.") ||
			strings.Contains(stack, "/internal/driver.")
		if started && !ofTests(stack) {
			all = append(all, stack)
		}
	}
	return strings.Join(all, "\n\n")
}

// ofTests reports whether a goroutine is one of a test, which may be in a call of the package.
func ofTests(stack string) bool {
	return strings.Contains(stack, "iwarp_test") || strings.Contains(stack, "/internal/e2e/")
}
