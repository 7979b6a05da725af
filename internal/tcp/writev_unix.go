//go:build unix && !linux

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// iovecs needs no memory here: the slices are written one by one.
type iovecs struct{}

// writev writes slices until one is not taken whole.
func (iovecs) writev(fd int, v [][]byte) (n int, err error) {
	for _, b := range v {
		m, err := syscall.Write(fd, b)
		if err != nil && n > 0 {
			return n, nil // the rest is tried again, and the error comes again
		}
		if err != nil {
			return 0, err
		}
		if n += m; m < len(b) {
			break
		}
	}
	return n, nil
}

// readNow reads what there is.
func readNow(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

// records does not exist here: TCP does not tell records apart.
type records struct{}

func (*rawConn) endRecords(bool) bool { return false }

// limits has what the system says of segments: their size.
type limits struct{ emss int }

func (r *rawConn) limits() (emss, record int) {
	r.segments.emss = 0
	_ = r.rc.Control(r.limitsFn)
	return r.segments.emss, 0
}

func (r *rawConn) askLimits(fd uintptr) {
	r.segments.emss, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
}

func (r *rawConn) writeVec(fd int, v [][]byte) (int, error) { return r.iov.writev(fd, v) }
