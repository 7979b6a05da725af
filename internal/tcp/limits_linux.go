package tcp

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPiece is what Linux builds at a time, to be cut into segments by the network card or
// shortly before: 64 KiB with the headers of the packet.
const maxPiece = 64<<10 - 512

// limits has what the system says of segments.
type limits struct {
	info   *unix.TCPInfo // while it is asked
	window int           // largest that the peer was seen to have
}

var infos = sync.Pool{New: func() any { return new(unix.TCPInfo) }}

// limits asks for the EMSS, and for the peer's window: a record has no more bytes than half of the largest window that
// there was. After each piece of a longer one TCP would send what fits into the window, in the middle of a segment.
func (r *rawConn) limits() (emss, record int) {
	info, s := r.asked(), &r.segments
	emss, s.window = int(info.Snd_mss), max(s.window, int(info.Snd_wnd))
	infos.Put(info)
	if emss == 0 {
		return 0, 0
	}
	return emss, max(min(maxPiece, s.window/2)/emss, 1) * emss
}

// asked returns what the system says. The caller puts it back into infos.
func (r *rawConn) asked() *unix.TCPInfo {
	info := infos.Get().(*unix.TCPInfo)
	info.Snd_mss, info.Snd_wnd = 0, 0 // as of a socket that is closed
	r.segments.info = info
	_ = r.rc.Control(r.limitsFn)
	r.segments.info = nil
	return info
}

func (r *rawConn) askLimits(fd uintptr) { ask(int(fd), r.segments.info) }

// ask has the system fill in what it knows of the connection. An older system leaves newer fields as they are.
func ask(fd int, info *unix.TCPInfo) {
	size := uint32(unsafe.Sizeof(*info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		info.Snd_mss = 0
	}
}
