package tcp

import (
	"errors"
	"net"
	"time"
)

// SetKeepAlive has TCP probe a peer that says nothing. Of a connection with a method
// NetConn it is that of the one below; without TCP it is errors.ErrUnsupported.
func (c *Conn) SetKeepAlive(cfg net.KeepAliveConfig) error {
	t, ok := basis(c.Conn).(*net.TCPConn)
	if !ok {
		return errors.ErrUnsupported
	}
	return t.SetKeepAliveConfig(cfg)
}

// SetUserTimeout bounds how long bytes, or probes, may be on their way without an
// acknowledgement (RFC 5482). Where there is no TCP_USER_TIMEOUT it is
// errors.ErrUnsupported.
func (c *Conn) SetUserTimeout(d time.Duration) error {
	t, ok := basis(c.Conn).(*net.TCPConn)
	if !ok {
		return errors.ErrUnsupported
	}
	return setUserTimeout(t, d)
}
