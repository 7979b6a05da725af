//go:build !386 && !s390x && !race

package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Short calls that never wait (MSG_DONTWAIT) are made without a word to Go's scheduler: to leave
// it and to come back takes longer than all else that this package does for a short message. No
// other goroutine has the processor meanwhile, so that it is not for calls that move much. recv and
// send are shorter in the system than read and write, too. 32-bit x86 and s390x have no calls of
// their own for them before Linux 4.3; and the race detector learns from read and write alone what was before what.

// shortSend is how many octets are sent at most without a word to the scheduler. What is read is
// in the processor's cache mostly, and bounded by BufferSize.
const shortSend = 8 << 10

// readNow reads what there is.
func readNow(fd int, b []byte) (int, error) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return moved(n, e)
}

// writeNow writes what the socket takes.
func writeNow(fd int, b []byte, flags int) (int, error) {
	flags |= unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	if len(b) > shortSend {
		n, _, e := syscall.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
		return moved(n, e)
	}
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	return moved(n, e)
}

// moved is what a system call that moves octets says.
func moved(n uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
