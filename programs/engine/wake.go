//go:build linux && (amd64 || arm64) && cgo && interposer

package main

/*
// A struct iw_waiters begins with what wakes them.
static void wake(void *waiters) { (*(void (**)(void *))waiters)(waiters); }
*/
import "C"

import "unsafe"

// wakes returns what wakes threads of the program's. It does not wait for anything.
func wakes(waiters unsafe.Pointer) func() { return func() { C.wake(waiters) } }
