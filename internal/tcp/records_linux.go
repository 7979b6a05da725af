package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// recordFlags end a record (MSG_EOR): Linux's TCP appends nothing to a segment that one
// ends in, even if that is not full and not yet sent. What it takes of less than the whole
// slice ends none, so that the rest goes on in the same segment.
const recordFlags = unix.MSG_EOR | unix.MSG_NOSIGNAL

// maxMessages is how many records one call takes, well under the system's 1024.
const maxMessages = 128

// TCP_CORK has TCP send whole segments only. Without it, TCP sends what just fits into the
// peer's window whenever that is full, in the middle of a segment too, and everything up
// to the end of the record is then out of step. TCP_NODELAY, set again after a write, sends
// its last segment all the same, full or not.
const (
	corkFrom   = 16 << 10 // a write of so many octets is made with TCP_CORK
	corkCheck  = 64 << 10 // after so many in smaller writes we ask whether octets wait in the socket
	uncorkFrom = 8        // after so many smaller writes we ask whether none do
)

// A message is the system's struct mmsghdr.
type message struct {
	header syscall.Msghdr
	sent   uint32
}

// records is the memory of what the system call wants to know of several records.
type records struct {
	on       bool
	corked   bool
	small    int // writes of less than corkFrom octets since the last larger one
	octets   int // of them, since corkCheck was reached
	messages []message
}

// endRecords has each slice end a record.
func (r *rawConn) endRecords(on bool) bool {
	r.records.on = on
	return true
}

// writeVec writes the slices, of which none is empty, in one call.
func (r *rawConn) writeVec(fd int, v [][]byte) (n int, err error) {
	if !r.records.on {
		return r.iov.writev(fd, v)
	}
	all := total(v)
	r.cork(fd, all)
	if len(v) == 1 {
		n, err = sendRecord(fd, v[0])
	} else {
		n, err = r.sendRecords(fd, v[:min(len(v), maxMessages)])
	}
	if err == nil && n == all {
		r.push(fd)
	}
	return n, err
}

// cork sets TCP_CORK ahead of many octets, and of few that others wait before. Where
// it cannot be set, TCP cuts as it would without.
func (r *rawConn) cork(fd, n int) {
	s := &r.records
	if n >= corkFrom {
		s.small, s.octets = 0, 0
	} else {
		s.small++
		s.octets += n
	}
	if s.corked {
		return
	}
	waiting := n >= corkFrom
	if s.octets >= corkCheck {
		s.octets = 0
		waiting = unsent(fd)
	}
	s.corked = waiting && unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 1) == nil
}

// push has all octets sent that were written. TCP_CORK ends when nothing was written for
// a while that it is for, so that writes need no push.
func (r *rawConn) push(fd int) {
	s := &r.records
	switch {
	case !s.corked:
	case s.small%uncorkFrom == uncorkFrom-1 && !unsent(fd):
		s.corked = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 0) != nil
	default:
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}

// unsent reports whether octets wait in the socket to be sent for the first time. The
// last write does not count, if it is held back by TCP_CORK.
func unsent(fd int) bool {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQNSD)
	return err == nil && n >= corkFrom
}

// sendRecord sends a slice as a record.
func sendRecord(fd int, b []byte) (int, error) {
	n, _, e := syscall.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), recordFlags, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// sendRecords sends each slice as a record, until one is not taken whole.
func (r *rawConn) sendRecords(fd int, v [][]byte) (int, error) {
	r.iov, r.records.messages = r.iov[:0], r.records.messages[:0]
	for _, b := range v {
		r.iov = append(r.iov, syscall.Iovec{Base: unsafe.SliceData(b), Len: iovLen(len(b))})
	}
	for i := range r.iov {
		m := message{header: syscall.Msghdr{Iov: &r.iov[i]}}
		m.header.Iovlen = 1
		r.records.messages = append(r.records.messages, m)
	}
	messages := r.records.messages
	n, _, e := syscall.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(messages))), uintptr(len(messages)), recordFlags, 0, 0)
	sent := 0
	for i := range messages[:max(int(n), 0)] {
		sent += int(messages[i].sent)
	}
	clear(r.iov)
	clear(messages)
	if e != 0 {
		return 0, e
	}
	return sent, nil
}
