package tcp

import "time"

// path asks the system. A nil rawConn is of no socket.
func (r *rawConn) path() (p Path, ok bool) {
	if r == nil {
		return Path{}, false
	}
	info := r.asked()
	defer infos.Put(info)
	return Path{
		RTT:    time.Duration(info.Rtt) * time.Microsecond,
		Var:    time.Duration(info.Rttvar) * time.Microsecond,
		Unsent: info.Notsent_bytes > 0,
	}, info.Rtt > 0
}
