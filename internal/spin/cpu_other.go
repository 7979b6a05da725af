//go:build !linux

package spin

import "runtime"

// ReadCPU reads what the runtime says. Only Linux has quotas that it knows of.
func ReadCPU() CPU { return CPU{Threads: min(runtime.GOMAXPROCS(0), runtime.NumCPU())} }
