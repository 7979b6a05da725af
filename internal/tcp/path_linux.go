package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// path asks the system. A nil rawConn is of no socket.
func (r *rawConn) path() (p Path, ok bool) {
	if r == nil {
		return Path{}, false
	}
	info := infos.Get().(*unix.TCPInfo)
	defer infos.Put(info)
	info.Rtt, info.Rttvar, info.Notsent_bytes = 0, 0, 0 // as of a socket that is closed
	_ = r.rc.Control(func(fd uintptr) { ask(int(fd), info) })
	return Path{
		RTT:    time.Duration(info.Rtt) * time.Microsecond,
		Var:    time.Duration(info.Rttvar) * time.Microsecond,
		Unsent: info.Notsent_bytes > 0,
	}, info.Rtt > 0
}
