package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps for a time that is often shorter than a millisecond, which time.Sleep may
// round up to one.
func pause(d time.Duration) {
	if d > 0 {
		t := unix.NsecToTimespec(d.Nanoseconds())
		_ = unix.Nanosleep(&t, nil)
	}
}
