package tcp

import (
	"errors"
	"os"
	"time"
)

// Renew has the Recv of the receiving goroutine return, if that has the role and the connection is a socket. IsRenewed
// then tells it that this is why.
func (c *Conn) Renew() {
	r := &c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.raw != nil && r.state == receiver && !r.renewed {
		r.renewed = true
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// IsRenewed reports whether it was Renew that has ended a Recv, which has returned an error. Then the receive buffer is
// not the caller's, and there is nothing in it.
func (c *Conn) IsRenewed(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.role.mu.Lock()
	defer c.role.mu.Unlock()
	if !c.endRenewal() {
		return false
	}
	c.Done()
	return true
}

// endRenewal takes back what Renew has done, if it has. The caller holds the role's lock.
func (c *Conn) endRenewal() (was bool) {
	if was = c.role.renewed; was {
		c.role.renewed = false
		_ = c.SetReadDeadline(time.Time{})
	}
	return was
}
