//go:build !linux

package tcp

// yieldThread does nothing: there the system alone says when other threads run.
func yieldThread() {}
