//go:build !linux

package spin

import "runtime"

// ReadCPU reads what the runtime says. Quotas are read on Linux only.
func ReadCPU() CPU { return CPU{Threads: min(runtime.GOMAXPROCS(0), runtime.NumCPU())} }
