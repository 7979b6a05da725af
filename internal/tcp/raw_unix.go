//go:build unix

package tcp

import (
	"net"
	"syscall"
)

// rawConn uses the descriptor of a socket that Go's poller watches: calls that
// do not wait, and waiting without a buffer.
type rawConn struct {
	rc syscall.RawConn

	taken bool // another goroutine was reading; the receiving goroutine's

	// What follows is guarded by rx.mu.
	rx      *rx
	readFn  func(fd uintptr) bool
	pollFn  func(fd uintptr)
	readN   int
	readErr error

	// What follows is of the goroutine that sends.
	vec     [][]byte
	tryFn   func(fd uintptr)
	sendFn  func(fd uintptr) bool
	sendN   int
	sendErr error
	iov     iovecs
	records records

	limitsFn func(fd uintptr)
	segments limits

	loss loss
}

func newRaw(c net.Conn) *rawConn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	rc, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	r := &rawConn{rc: rc}
	// These are made once: a new one for each call would be allocated. The others are made when they are needed.
	r.readFn, r.tryFn, r.limitsFn = r.readReady, r.writeOnce, r.askLimits
	return r
}

// recv waits until something was read; the receive buffer is then locked.
//
// It does not wait for that lock within the poller's call: whoever has it may be
// about to close the socket, which waits for such calls to end.
func (r *rawConn) recv() error {
	for {
		r.taken = false
		err := r.rc.Read(r.readFn)
		if err != nil {
			r.rx.mu.Lock()
			return err
		}
		if !r.taken {
			return r.outcome()
		}
		r.rx.wait()
	}
}

// tryRecv is recv without waiting. It does not take part in the poller's order
// of readers, so that it can be called while recv waits.
func (r *rawConn) tryRecv() (ok bool, err error) {
	if !r.rx.mu.TryLock() {
		return false, nil
	}
	r.rx.polled()
	if ok, err = r.recvNow(); !ok {
		r.rx.mu.Unlock()
	}
	return ok, err
}

// recvNow is tryRecv for a caller that has locked the receive buffer. It stays locked.
func (r *rawConn) recvNow() (ok bool, err error) {
	if r.pollFn == nil {
		r.pollFn = r.readOnce
	}
	if r.rx.released || r.rc.Control(r.pollFn) != nil || r.readErr == syscall.EAGAIN || r.atEnd() {
		r.rx.idle()
		return false, nil
	}
	return true, r.outcome()
}

// look is recvNow for one that looks again and again: it keeps the memory of the buffer while there is nothing. Over
// tells that there is no point in looking again.
func (r *rawConn) look() (found, over bool) {
	if r.pollFn == nil {
		r.pollFn = r.readOnce
	}
	switch {
	case r.rx.released || r.rc.Control(r.pollFn) != nil || r.atEnd():
		return false, true
	case r.readErr == syscall.EAGAIN:
		return false, false
	}
	return true, true
}

// atEnd reports a FIN, which whoever waits in recv sees too.
func (r *rawConn) atEnd() bool { return r.readErr == nil && r.readN == 0 }

// outcome says what the last read has brought.
func (r *rawConn) outcome() error {
	r.rx.w += max(r.readN, 0)
	if r.readErr != nil {
		return wrapErrno("read", r.readErr)
	}
	if r.atEnd() {
		return r.endError()
	}
	return nil
}

// readReady reads without waiting; false has the poller wait and call again.
func (r *rawConn) readReady(fd uintptr) bool {
	if r.taken = !r.rx.mu.TryLock(); r.taken {
		return true
	}
	r.readOnce(fd)
	if r.readErr != syscall.EAGAIN {
		return true
	}
	r.rx.idle()
	r.rx.mu.Unlock()
	return false
}

func (r *rawConn) readOnce(fd uintptr) {
	for {
		r.readN, r.readErr = readNow(int(fd), r.rx.room())
		if r.readErr != syscall.EINTR {
			return
		}
	}
}

// trySend writes without waiting. It passes the poller's order of writers by, as nobody else sends meanwhile.
func (r *rawConn) trySend(v [][]byte) (n int, wait bool, err error) {
	r.vec, r.sendN, r.sendErr = v, 0, nil
	err = r.rc.Control(r.tryFn)
	r.vec = nil
	if err == nil {
		n, err = max(r.sendN, 0), r.sendErr
	}
	if err == syscall.EAGAIN {
		return 0, true, nil
	}
	if err != nil {
		return n, false, wrapErrno("write", err)
	}
	return n, n < total(v), nil
}

func (r *rawConn) send(v [][]byte) (n int, err error) {
	if r.sendFn == nil {
		r.sendFn = r.writeReady
	}
	r.vec, r.sendN, r.sendErr = v, 0, nil
	err = r.rc.Write(r.sendFn)
	r.vec = nil
	if err == nil {
		n, err = max(r.sendN, 0), r.sendErr
	}
	return n, wrapErrno("write", err)
}

func (r *rawConn) writeOnce(fd uintptr) {
	for {
		r.sendN, r.sendErr = r.writeVec(int(fd), r.vec)
		if r.sendErr != syscall.EINTR {
			return
		}
	}
}

func (r *rawConn) writeReady(fd uintptr) bool {
	r.writeOnce(fd)
	return r.sendErr != syscall.EAGAIN
}

func wrapErrno(call string, err error) error {
	if e, ok := err.(syscall.Errno); ok {
		return &net.OpError{Op: call, Net: "tcp", Err: e}
	}
	return err
}

func total(v [][]byte) (n int) {
	for _, b := range v {
		n += len(b)
	}
	return n
}
