package iwarp

import "net"

// addressed is what has a connection's addresses.
type addressed interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// ends are the addresses of a connection, as it has told them when it came up: it may be the consumer's, whose code runs
// without a lock.
type ends struct {
	local, remote net.Addr
	logged        []any // the same, for log records; nil if nothing is logged
}

// endsOf asks a connection for its addresses.
func (qp *QP) endsOf(c addressed) ends {
	e := ends{local: c.LocalAddr(), remote: c.RemoteAddr()}
	if qp.rnic.logs() {
		e.logged = logEnds(c)
	}
	return e
}

// logEnds returns the addresses of both ends of a connection, as arguments of a log record.
func logEnds(c addressed) []any {
	return []any{"local", addrText(c.LocalAddr()), "peer", addrText(c.RemoteAddr())}
}

// addrText returns an address as text. A consumer's connection may have none.
func addrText(a net.Addr) string {
	if a == nil {
		return "an unknown address"
	}
	return a.String()
}

// LocalAddr returns our address, or nil before there is a connection.
func (qp *QP) LocalAddr() net.Addr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.ends.local
}

// RemoteAddr returns the peer's address, or nil before there is a connection.
func (qp *QP) RemoteAddr() net.Addr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.ends.remote
}
