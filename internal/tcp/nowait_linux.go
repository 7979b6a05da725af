//go:build !386 && !s390x && !race

package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Short calls that never wait (MSG_DONTWAIT) are made without telling Go's scheduler: leaving it and coming back takes
// longer than all else that this package does for a short message. No other goroutine has the processor meanwhile, so
// this is not for calls that move much. recv and send are also shorter in the system than read and write. 32-bit x86
// and s390x have no system calls for them before Linux 4.3. The race detector learns the order of events from read and
// write alone.

// shortSend is how many bytes are sent at most without telling the scheduler. What is read is mostly in the
// processor's cache, and bounded by BufferSize.
const shortSend = 8 << 10

// readNow reads what there is.
func readNow(fd int, b []byte) (int, error) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return moved(n, e)
}

// writeNow writes what the socket takes.
func writeNow(fd int, b []byte, flags int) (int, error) {
	flags |= unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	if len(b) > shortSend {
		n, _, e := syscall.Syscall6(unix.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
		return moved(n, e)
	}
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	return moved(n, e)
}

// moved returns what a system call that moves bytes has returned, as Go's do.
func moved(n uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
