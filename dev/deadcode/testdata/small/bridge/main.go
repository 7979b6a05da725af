//go:build cgo && bridge

// Command bridge is for C.
package main

import "C"

import (
	"unsafe"

	"example.com/small/rules"
)

func main() {}

//export small_by_c
func small_by_c(p unsafe.Pointer, n C.int) { _ = rules.ByC(C.GoBytes(p, n)) }

// small_dead is called by nobody, not even by C.
func small_dead() {}
