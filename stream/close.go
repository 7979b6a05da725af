package stream

import (
	"errors"

	"github.com/goiwarp/iwarp"
)

// CloseWrite ends our direction: the peer's Read returns io.EOF after what was written. Reading goes on. It fails if a Write has failed because
// the connection was over, or if the connection has ended and the peer has not closed it in order: octets of a Write may be lost then.
func (c *Conn) CloseWrite() error {
	if err := c.enter(&c.wr, c.writing); err != nil {
		return c.opError("close", err)
	}
	defer c.writing.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("close", errClosed)
	}
	return c.opError("close", c.end())
}

// end says that nothing more is written. The caller has c.mu, and the gate.
func (c *Conn) end() error {
	c.advance() // what the peer has said decides what is said
	w, send := c.ep.End()
	if c.out.failed != nil || !send {
		return c.out.failed
	}
	if err := c.sendWord(w); err != nil {
		return c.brokenLocked(err)
	}
	return nil
}

// Close ends the connection. Calls that wait return net.ErrClosed; what Write has taken is sent, and Close returns when the peer's end of
// the QP has closed its side, too, or after iwarp.QPConfig.CloseTimeout. An error says that the end was not in order, and that the peer
// may not have everything. What has arrived and was not read is lost. Closing again is net.ErrClosed.
func (c *Conn) Close() error {
	if !c.shut() {
		return c.opError("close", errClosed)
	}
	c.rd.end()
	c.wr.end()
	c.writing <- struct{}{} // those who wait leave, now that their contexts have ended
	owed := c.disconnect()
	err := c.ended(c.qp.Close(), owed)
	_ = c.release()
	for _, l := range c.out.left {
		_ = l.mr.Deregister()
	}
	c.unmap()
	c.writing.leave()
	return c.opError("close", err)
}

// disconnect says Disconnect where the peer is to know, and reports whether it owes that word, too: one of rdma-core's says none once it has ours.
func (c *Conn) disconnect() (owed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledUnlocking(nil) // the contexts have ended
	c.advance()         // what the peer has said decides what is said
	w, send := c.ep.Disconnect()
	if !send {
		return false
	}
	gone := c.sendWord(w) != nil // without a word
	return gone || c.ep.Peer().CountsMaps
}

// ended is the error of the QP's close, but where the peer has closed the connection, too: it wants nothing more. A peer that was the first
// to end the connection owed a word, unless both directions had ended before.
func (c *Conn) ended(err error, owed bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledUnlocking(nil) // the contexts have ended
	c.advance()
	switch {
	case c.ep.Disconnected():
		return nil
	case c.out.failed != nil:
		return c.out.failed
	case err == nil && owed && errors.Is(c.qp.Err(), iwarp.ErrPeerClosed):
		return lost(c.qp.Err())
	}
	return err
}

// shut marks the connection closed, once.
func (c *Conn) shut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	c.alive.stop()
	return true
}
