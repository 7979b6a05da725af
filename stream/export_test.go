package stream

// KeepsAlive reports whether the timer runs that sends a Write when nothing else is sent.
func (c *Conn) KeepsAlive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive.timer != nil
}

// Unmap takes the memory of all mappings back, as Close does.
func (c *Conn) Unmap() { c.unmap() }

// Disconnect is Close up to the end of the QP, and Ended what is left of it.
func (c *Conn) Disconnect() (owed bool) { return c.disconnect() }

// Ended is Close after the end of the QP.
func (c *Conn) Ended(err error, owed bool) error { return c.ended(err, owed) }
