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

// A message is the system's struct mmsghdr.
type message struct {
	header syscall.Msghdr
	sent   uint32
}

// records is the memory of what the system call wants to know of several records.
type records struct {
	on       bool
	corked   bool
	room     int // bytes that the peer's window has room for, or more, after those written
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
		n, err = writeNow(fd, v[0], recordFlags)
	} else {
		n, err = r.sendRecords(fd, v[:min(len(v), maxMessages)])
	}
	r.records.room -= n
	if err == nil && n == all && r.records.corked {
		push(fd)
	}
	return n, err
}

// cork has TCP send whole segments only (TCP_CORK), if the peer's window may have no room for
// n bytes more. Without it, TCP sends what just fits into the window, in the middle of a
// segment too, and everything up to the end of the record is then out of step. With it, the
// last segment of each record, if it is not full, is a packet of its own, which costs much
// where records are small; so it is for that case only. Where it cannot be set, TCP cuts
// as it would without.
func (r *rawConn) cork(fd, n int) {
	s := &r.records
	if s.room < n {
		s.room = windowRoom(fd)
	}
	if full := s.room < n; full != s.corked {
		on := 0
		if full {
			on = 1
		}
		if unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, on) == nil {
			s.corked = full
		}
	}
}

// push has TCP send the last segment of a write in spite of TCP_CORK, full or not.
func push(fd int) { _ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) }

// windowRoom returns how many bytes the peer's window has room for after those that are
// written: less than zero if some of them wait for it. That only grows, as a window's end
// does not go back, so that no more than that many bytes need asking once. Acknowledgements
// that come between the two questions make it smaller than it is.
//
// RFC 9293, section 3.8.6: "a TCP receiver SHOULD NOT shrink the window".
func windowRoom(fd int) int {
	queued, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	info := infos.Get().(*unix.TCPInfo)
	defer infos.Put(info)
	info.Snd_wnd = 0 // as of a system that does not tell
	ask(fd, info)
	return int(info.Snd_wnd) - queued
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
	n, _, e := syscall.Syscall6(unix.SYS_SENDMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(messages))), uintptr(len(messages)), recordFlags, 0, 0)
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
