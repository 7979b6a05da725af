//go:build linux && (amd64 || arm64) && cgo && interposer

// Command engine is package verbs as a shared library for C: it is built with -buildmode=c-shared and the tag
// interposer, and loaded by the library that is preloaded (programs/preload/engine.h has the other side of each
// function). Nothing else of the module needs a C compiler.
//
// The functions return an error number, or 0; C's pointers are read and written during the call only, but for memory
// that is registered.
package main

import "C"

import (
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/programs/verbs"
)

func main() {}

// sources is the first half of the digest of the sources that this was built from, in hexadecimal, as the linker sets
// it.
var sources string

// iw_sources is called first: the two libraries go together only if they are of the same sources.
//
//export iw_sources
func iw_sources(to *uint64) int32 {
	n, err := strconv.ParseUint(sources, 16, 64)
	if err != nil {
		return int32(syscall.EINVAL)
	}
	*to = n
	return int32(startPoller())
}

// startPoller has Go's runtime open the descriptors of its poller now. It would open them at the first timer or socket,
// and end the process if the program had taken all descriptors by then.
func startPoller() syscall.Errno {
	if errno := canOpenTwo(); errno != 0 {
		return errno
	}
	time.AfterFunc(time.Hour, func() {}).Stop()
	return 0
}

// canOpenTwo reports whether there are two descriptors to be had: the poller takes an epoll and an eventfd.
func canOpenTwo() syscall.Errno {
	for range 2 {
		fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
		if errno, ok := err.(syscall.Errno); ok {
			return errno
		}
		defer syscall.Close(fd)
	}
	return 0
}

// roce is the guise, as C has chosen it before there is a device.
var roce bool

//export iw_guise
func iw_guise(isRoCE int32) int32 {
	roce = isRoCE != 0
	return 0
}

// device is the one of the process: C has no place to keep it.
var device = sync.OnceValue(func() *verbs.Device {
	cfg := verbs.ConfigFrom(syscall.Getenv)
	cfg.RoCE = roce
	makeRoom()
	return verbs.NewDevice(cfg)
})

// makeRoom lets Go run two threads at once, also on one processor. A program that polls has one of them for itself,
// until Go takes it away after 10 ms: what receives for the program would wait for that. Which of them has the
// processor is for the kernel to say, to which polls in vain give way.
func makeRoom() {
	const least = 2
	if runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}

// give stores a result where C wants it.
func give(to *uint64, h verbs.Handle, errno syscall.Errno) int32 {
	*to = uint64(h)
	return int32(errno)
}

// blame stores where C wants it which request was not posted: none if all were. Programs that do not want to know give
// NULL.
func blame[WR any](to *unsafe.Pointer, bad *WR, errno syscall.Errno) int32 {
	if to != nil {
		*to = unsafe.Pointer(bad)
	}
	return int32(errno)
}
