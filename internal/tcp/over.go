package tcp

import "net"

// TellsEnd reports whether CloseWrite, after the peer's FIN, tells of a reset. Unacked and AwaitEnd know more on Linux.
func (c *Conn) TellsEnd() bool {
	_, ok := c.Conn.(*net.TCPConn)
	return ok
}

// Unacked returns how many bytes of what was sent the peer has not acknowledged, as far as the system tells; our FIN
// counts as one. Its error is that of a connection that was reset.
func (c *Conn) Unacked() (n int, err error) {
	if c.raw == nil {
		return 0, nil
	}
	_, owes, err := c.raw.over()
	return owes, err
}

// Gone tells, while nobody reads, that the connection was lost, as far as the system tells: what it has that was not
// read does not hide that. Of a connection with a method NetConn, as tls.Conn has, the one below tells.
func (c *Conn) Gone() error {
	if c.base == nil {
		return c.LossError()
	}
	return c.base.gone()
}

// AwaitEnd waits, after the peer's FIN, until the peer has acknowledged ours, or has reset the connection, of which the
// error tells. Where the system does not, and once the connection is closed here, known is false.
func (c *Conn) AwaitEnd() (known bool, err error) {
	if c.raw == nil {
		return false, nil
	}
	return c.raw.awaitOver()
}
