//go:build unix

package procstat

import (
	"time"

	"golang.org/x/sys/unix"
)

// Taken returns the time that this process has computed since it began, and how often its
// threads have gone to sleep. How often others took their CPU says nothing of this process.
func Taken() (cpu time.Duration, switches int64) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(r.Nvcsw) //nolint:unconvert // it has 32 bits elsewhere
}
