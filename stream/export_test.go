package stream

// KeepsAlive reports whether the timer runs that sends a Write when nothing else is sent.
func (c *Conn) KeepsAlive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive.timer != nil
}
