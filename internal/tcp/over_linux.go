package tcp

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A loss keeps how a connection was lost: the system tells that once, and several goroutines may ask.
type loss struct {
	finished atomic.Bool // our half is closed, or about to be
	mu       sync.Mutex
	over     bool // seen in CLOSED, which no connection leaves
	err      error
}

// finishes notes whether our half is being closed, before that is.
func (r *rawConn) finishes(on bool) { r.loss.finished.Store(on) }

// endError says what the end is that was read. The system tells a reset once: where a write has taken that, as it may
// have here, it shows who reads a FIN. But it moves a connection to CLOSED only when that is lost, as long as our half
// is open.
func (r *rawConn) endError() error {
	over, _, err := r.over()
	switch {
	case !over, r.loss.finished.Load(): // read after over was asked: our half may have been closed meanwhile
		return io.EOF
	case err != nil:
		return err
	}
	return wrapErrno("read", syscall.ECONNRESET)
}

// gone says how the connection was lost; nil if it was not. With both FINs acknowledged it is over, and not lost.
func (r *rawConn) gone() error {
	if err := r.endError(); !errors.Is(err, io.EOF) {
		return err
	}
	_, _, err := r.over()
	return err
}

// over reports whether the system has done with the connection, and if not, how many bytes it has that are not
// acknowledged, of which a FIN is one. The error is how it was lost.
func (r *rawConn) over() (over bool, owed int, err error) {
	var asked struct { // one struct, so that the closure costs one allocation
		over bool
		owed int
		err  error
	}
	failed := r.rc.Control(func(fd uintptr) { asked.over, asked.owed, asked.err = r.loss.endOf(int(fd)) })
	if failed != nil {
		return false, 0, nil
	}
	return asked.over, asked.owed, asked.err
}

// tcpClose is Linux's name for the state CLOSED of RFC 9293, section 3.3.2, in which a socket is in TIME-WAIT, too.
const tcpClose = 7

func (l *loss) endOf(fd int) (over bool, owed int, err error) {
	if over, err = l.known(); over {
		return true, 0, err
	}
	info := infos.Get().(*unix.TCPInfo)
	defer infos.Put(info)
	info.State = 0 // no state of TCP: the system did not answer
	switch ask(fd, info); info.State {
	case 0:
		return false, 0, nil
	case tcpClose:
		return true, 0, l.of(fd)
	}
	owed, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	return false, owed, nil
}

// known returns what the method of has found before.
func (l *loss) known() (over bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over, l.err
}

// of returns what has become of a connection in CLOSED.
func (l *loss) of(fd int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over, l.err = true, lost(fd)
	}
	return l.err
}

// lost asks the system what has become of a connection in CLOSED. After the peer's FIN, a reset shows as EPIPE.
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
		over, _, err = r.loss.endOf(int(fd))
		return over
	})
	return closed == nil, err
}
