package stream

import (
	"errors"

	"github.com/goiwarp/iwarp"
)

// CloseWrite ends the direction of this end: the peer's Read returns io.EOF after what was written. Reading goes on.
// CloseWrite fails if a Write has failed because the connection was over. It also fails if the connection has ended
// and the peer has not closed it in order. Bytes that Write has taken may be lost then.
func (c *Conn) CloseWrite() error {
	if !c.made() {
		return c.opError("close", errNoConn)
	}
	if err := c.enter(&c.wr); err != nil {
		return c.opError("close", err)
	}
	defer c.wr.gate.leave()
	err, unposted := c.endWriting()
	if unposted != nil {
		err = c.broken(unposted)
	}
	return c.opError("close", err)
}

// endWriting sends the word that says that nothing more is written. If it cannot be posted, unposted says why. The
// caller is in wr.
func (c *Conn) endWriting() (err, unposted error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed, nil
	}
	c.pollWords() // which word is due depends on those of the peer
	w, send := c.ep.End()
	if c.out.failed != nil || !send {
		return c.out.failed, nil
	}
	return nil, c.sendWord(w)
}

// Close ends the connection. Calls that wait return net.ErrClosed. What Write has taken is sent: Close returns when
// the peer's QP has closed its side, too, or after iwarp.QPConfig.CloseTimeout without progress. An error says that
// the end was not in order, and that the peer may not have everything. What has arrived and was not read is lost. A
// second Close returns net.ErrClosed.
func (c *Conn) Close() error {
	if !c.made() {
		return c.opError("close", errNoConn)
	}
	if !c.markClosed() {
		return c.opError("close", errClosed)
	}
	c.rd.close()
	c.wr.close()
	c.wr.gate <- struct{}{} // Calls that waited for it fail, now that their context has ended.
	c.awaitPoller(nil)      // So does the call that polls, and no other polls after it.
	needsWord := c.disconnect()
	err := c.closeError(c.qp.Close(), needsWord)
	_ = c.release()
	for _, l := range c.out.lent {
		_ = l.mr.Deregister()
	}
	c.unmap()
	c.wr.gate.leave()
	return c.opError("close", err)
}

// disconnect sends Disconnect if the peer is to know. It reports whether an end in order needs that word of the peer,
// too. An end of ours always sends it. One of rdma-core's sends none after it has ours: so it owes its word only if
// ours cannot be sent, as it has ended the connection before.
func (c *Conn) disconnect() (needsWord bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollWords() // which word is due depends on those of the peer
	w, send := c.ep.Disconnect()
	if !send {
		return false
	}
	unsent := c.sendWord(w) != nil
	return unsent || c.ep.Peer().CountsMaps
}

// closeError is the error of Close, where the QP's Close has returned err. There is none if the peer has closed the
// connection, too: it wants nothing more.
func (c *Conn) closeError(err error, needsWord bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollWords()
	switch {
	case c.ep.Disconnected():
		return nil
	case c.out.failed != nil:
		return c.out.failed
	case err == nil && needsWord && errors.Is(c.qp.Err(), iwarp.ErrPeerClosed):
		return unexpectedEnd(c.qp.Err())
	}
	return err
}

// markClosed reports whether this is the first Close.
func (c *Conn) markClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	c.alive.stop()
	return true
}
