//go:build !amd64 || purego || race || msan || asan

package crc32c

// The detectors of races and of bad accesses do not see what assembly does: under them
// all is left to the compiler.

func detect() method { return portable }

func fold(state uint32, p []byte) uint32 { panic("crc32c: no folding here") }

func foldCopy(dst, src []byte, state uint32) uint32 { panic("crc32c: no folding here") }

func fold256(state uint32, p []byte) uint32 { panic("crc32c: no folding here") }

func foldCopy256(dst, src []byte, state uint32) uint32 { panic("crc32c: no folding here") }

func words(state uint32, p []byte) uint32 { panic("crc32c: no such instruction here") }

func foldWeave(dst, src []byte, distance, state uint32) uint32 { panic("crc32c: no folding here") }

func foldWeave256(dst, src []byte, distance, state uint32) uint32 { panic("crc32c: no folding here") }
