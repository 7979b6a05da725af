package tcp

import (
	"syscall"
	"unsafe"
)

// maxIovecs is how many slices one call takes, well under the system's 1024.
const maxIovecs = 512

// iovecs is the memory of the vector that the system call wants, kept so that a
// write costs no allocation.
type iovecs []syscall.Iovec

// writev writes the slices in one call. None of them is empty.
func (io *iovecs) writev(fd int, v [][]byte) (int, error) {
	if len(v) == 1 {
		return writeNow(fd, v[0], 0)
	}
	*io = (*io)[:0]
	for _, b := range v[:min(len(v), maxIovecs)] {
		*io = append(*io, syscall.Iovec{Base: unsafe.SliceData(b), Len: iovLen(len(b))})
	}
	n, _, e := syscall.Syscall(syscall.SYS_WRITEV, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(*io))), uintptr(len(*io)))
	clear(*io)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
