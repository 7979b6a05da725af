package stream

// CloseWrite ends our direction: the peer's Read returns io.EOF after what was written. Reading goes on.
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
	c.advance() // what the peer has said decides what is said
	w, send := c.ep.End()
	c.wakeAll()
	if !send {
		return nil
	}
	return c.opError("close", c.sendWord(w))
}

// Close ends the connection. Calls that wait return net.ErrClosed; what Write has taken is sent, and Close returns when the peer's end of
// the QP has closed its side, too, or after iwarp.QPConfig.CloseTimeout. Its error says that this was not in order,
// and that the peer may not have everything. What has arrived and was not read is lost. Closing again is net.ErrClosed.
func (c *Conn) Close() error {
	if !c.shut() {
		return c.opError("close", errClosed)
	}
	c.rd.end()
	c.wr.end()
	c.writing <- struct{}{} // those who wait leave, now that their contexts have ended
	c.mu.Lock()
	if w, send := c.ep.Disconnect(); send {
		_ = c.sendWord(w) // where that fails there is no peer any more
	}
	c.mu.Unlock()
	err := c.ended(c.qp.Close())
	_ = c.release()
	for _, l := range c.out.left {
		_ = l.mr.Deregister()
	}
	c.unmap()
	c.writing.leave()
	return c.opError("close", err)
}

// ended is the error of the QP's close, but where the peer has closed the connection, too: it wants nothing more.
func (c *Conn) ended(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.led(nil) // the contexts have ended
	if c.advance(); c.ep.Disconnected() {
		return nil
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
	c.wakeAll()
	return true
}
