package capture

// A queue has connections in the order in which they were last seen.
type queue struct {
	oldest, newest *Connection
	length         int
}

// push puts in a connection that is in no queue, as the newest.
func (q *queue) push(c *Connection) {
	c.queue, c.before, c.after = q, q.newest, nil
	if q.newest == nil {
		q.oldest = c
	} else {
		q.newest.after = c
	}
	q.newest = c
	q.length++
}

// remove takes a connection out.
func (q *queue) remove(c *Connection) {
	if c.before == nil {
		q.oldest = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		q.newest = c.before
	} else {
		c.after.before = c.before
	}
	c.queue.length--
	c.queue, c.before, c.after = nil, nil, nil
}

// moveTo makes c, which is in a queue, the newest of q.
func (c *Connection) moveTo(q *queue) {
	if c.queue == q && q.newest == c {
		return
	}
	c.queue.remove(c)
	q.push(c)
}
