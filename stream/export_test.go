package stream

// KeepsAlive reports whether the timer runs that sends a Write when nothing else is sent.
func (c *Conn) KeepsAlive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive.timer != nil
}

// Unmap takes the memory of all mappings back, as Close does.
func (c *Conn) Unmap() { c.unmap() }
