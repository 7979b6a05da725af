package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

func (r *rawConn) path() (p Path, ok bool) {
	_ = r.rc.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || info.Rtt == 0 {
			return
		}
		p = Path{
			RTT:    time.Duration(info.Rtt) * time.Microsecond,
			Var:    time.Duration(info.Rttvar) * time.Microsecond,
			Unsent: info.Notsent_bytes > 0,
		}
		ok = true
	})
	return p, ok
}
