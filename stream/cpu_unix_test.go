//go:build unix

package stream_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is how much of the processors the program has used.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	must(tb, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
