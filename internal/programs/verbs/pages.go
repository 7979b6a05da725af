//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"unsafe"
)

// Advice of madvise, from Linux 5.14 on: it has all pages brought in, as they are when a device pins them, for reading
// or for writing.
const (
	populateRead  = 22
	populateWrite = 23
	noAdvice      = 1 << 30 // that no kernel knows
)

// usable reports whether all pages of the memory may be read, and written if access has accessLocalWrite: a goroutine
// that touches one that may not would end the process. Before Linux 5.14 it reports whether they are mapped.
func usable(addr unsafe.Pointer, n uint64, access uint32) bool {
	if n == 0 {
		return true
	}
	page := uint64(syscall.Getpagesize())
	first := uint64(uintptr(addr)) &^ (page - 1)
	last := uint64(uintptr(addr)) + n
	if !mapped(first, last-first) {
		return false
	}
	advice := uintptr(populateRead)
	if access&accessLocalWrite != 0 {
		advice = populateWrite
	}
	return !populates(advice) || populate(first, last-first, advice) == fine
}

// mapped reports whether all pages are those of something, which they are not where the addresses wrap around.
func mapped(first, n uint64) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_MSYNC, uintptr(first), uintptr(n), msAsync)
	return errno == fine
}

// msAsync has msync do nothing but look for pages that are not mapped.
const msAsync = 1

// populates reports whether the kernel knows the advice. It looks at that before the length, so that nothing is brought
// in. An emulator may take any advice, and do nothing.
func populates(advice uintptr) bool {
	return populate(0, 0, advice) == fine && populate(0, 0, noAdvice) != fine
}

func populate(first, n uint64, advice uintptr) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(first), uintptr(n), advice)
	return errno
}
