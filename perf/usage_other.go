//go:build !linux

package perf

import "time"

// We know of no way to ask these systems for what follows.

func queueWait() time.Duration { return 0 }

func stolen() int64 { return 0 }

// A callCounter counts the system calls of this process, which is not possible here.
type callCounter struct{}

func newCallCounter() *callCounter { return nil }

func (*callCounter) count() int64 { return 0 }

func (*callCounter) close() {}
