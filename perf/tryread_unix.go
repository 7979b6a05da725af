//go:build unix

package perf

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// A tryReader reads from a TCP connection without waiting.
type tryReader struct {
	raw syscall.RawConn
	b   []byte
	n   int
	err error
	do  func(fd uintptr) bool // once is made a function only once
}

// newTryReader returns nil for a connection that has no socket.
func newTryReader(conn net.Conn) *tryReader {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	r := &tryReader{raw: raw}
	r.do = r.once
	return r
}

// read reads what there is; ok is false if there is nothing yet.
func (r *tryReader) read(b []byte) (n int, ok bool, err error) {
	if r == nil {
		return 0, false, nil
	}
	r.b = b
	if err := r.raw.Read(r.do); err != nil {
		return 0, true, err
	}
	switch {
	case errors.Is(r.err, unix.EAGAIN), errors.Is(r.err, unix.EINTR):
		return 0, false, nil
	case r.err != nil:
		return 0, true, r.err
	case r.n == 0 && len(b) > 0:
		return 0, true, io.EOF
	}
	return r.n, true, nil
}

// once makes one attempt; the poller is never to wait for another.
func (r *tryReader) once(fd uintptr) bool {
	r.n, r.err = unix.Read(int(fd), r.b)
	return true
}
