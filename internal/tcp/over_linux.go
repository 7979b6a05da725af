package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// over reports whether the system has done with the connection, and if not, whether it has octets that are not acknowledged,
// or a FIN. The error, which the system tells once, is how it was lost.
func (r *rawConn) over() (over, owes bool, err error) {
	if failed := r.rc.Control(func(fd uintptr) { over, owes, err = endOf(int(fd)) }); failed != nil {
		return false, false, nil
	}
	return over, owes, err
}

// tcpClose is Linux's name for the state CLOSED of RFC 9293, section 3.3.2, in which a socket is in TIME-WAIT, too.
const tcpClose = 7

func endOf(fd int) (over, owes bool, err error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	switch {
	case err != nil:
		return false, false, nil
	case info.State != tcpClose:
		return false, info.Unacked > 0 || info.Notsent_bytes > 0, nil
	}
	return true, false, lost(fd)
}

// lost returns what has become of a connection in CLOSED. After the peer's FIN, a reset shows as EPIPE.
func lost(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch why := syscall.Errno(n); {
	case err != nil || why == 0:
		return nil
	case why == syscall.EPIPE:
		return wrapErrno("read", syscall.ECONNRESET)
	default:
		return wrapErrno("read", why)
	}
}

// awaitOver leaves the waiting to Go's poller, which the system wakes when the connection goes to CLOSED.
func (r *rawConn) awaitOver() (known bool, err error) {
	closed := r.rc.Read(func(fd uintptr) (over bool) {
		over, _, err = endOf(int(fd))
		return over
	})
	return closed == nil, err
}
