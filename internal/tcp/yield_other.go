//go:build !linux

package tcp

// yieldThread does nothing: a look lets other threads have the processor as it lets other goroutines run.
func yieldThread() {}
