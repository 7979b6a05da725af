// Package procstat measures this process: its processor time and its memory.
package procstat

import (
	"runtime"
	"time"
)

// CPUTime returns the time that this process has computed since it began.
func CPUTime() time.Duration {
	cpu, _ := Taken()
	return cpu
}

// Held returns how many bytes this process has: in its heap, and in stacks.
func Held() (heap, stacks uint64) {
	for range 3 { // what is in pools goes at the second; stacks shrink by half each time
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}
