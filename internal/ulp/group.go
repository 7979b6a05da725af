package ulp

// DefaultMost is the bound of a [Group], in bytes.
const DefaultMost = 256 << 20

// A Group bounds what the Conns of a capture remember together. When they remember more, the one that has said nothing
// for longest forgets everything. The zero Group is ready.
type Group[M any] struct {
	Most int // bytes, about; 0 is DefaultMost

	used           int
	oldest, latest *Conn[M]
}

// New returns the Conn of a connection, by the port that was connected to and the private data of the two ends, the one
// that connected first.
func (g *Group[M]) New(port uint16, private [2][]byte) *Conn[M] {
	c := newConn[M](port, private)
	c.group = g
	g.join(c)
	c.Count()
	return c
}

// Used is how many bytes all remember, about.
func (g *Group[M]) Used() int { return g.used }

// Count counts anew what the Conn remembers. Send and Access do so, too.
func (c *Conn[M]) Count() {
	g := c.group
	if g == nil {
		return
	}
	if g.latest != c {
		g.leave(c)
		g.join(c)
	}
	n := c.size()
	g.used += n - c.counted
	c.counted = n
	most := g.Most
	if most == 0 {
		most = DefaultMost
	}
	for g.used > most && g.oldest != c {
		g.oldest.Forgotten = true
		g.oldest.Leave()
	}
}

// Leave forgets everything: nothing is said any more.
func (c *Conn[M]) Leave() {
	if g := c.group; g != nil {
		g.leave(c)
		g.used -= c.counted
	}
	c.group, c.counted, c.candidates, c.known, c.marks, c.Heads = nil, 0, nil, false, nil, [2][]byte{}
}

// join makes a Conn the latest.
func (g *Group[M]) join(c *Conn[M]) {
	c.before, c.after = g.latest, nil
	if g.latest != nil {
		g.latest.after = c
	} else {
		g.oldest = c
	}
	g.latest = c
}

func (g *Group[M]) leave(c *Conn[M]) {
	if c.before != nil {
		c.before.after = c.after
	} else {
		g.oldest = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		g.latest = c.before
	}
}

// What is remembered costs about so many bytes, with what the runtime needs for it.
const (
	costConn      = 512
	costCandidate = 512
	costEarly     = 192 // beside its texts
	costMark      = 64
	costRequest   = 192
	costSTag      = 96
	costPiece     = 128
)

// size is what the Conn remembers, in bytes.
func (c *Conn[M]) size() int {
	n := costConn + costMark*cap(c.marks) + cap(c.Heads[0]) + cap(c.Heads[1])
	for _, k := range c.candidates {
		n += costCandidate + costEarly*cap(k.early) + k.protocol.size()
		for i := range k.early {
			n += len(k.early[i].Text) + len(k.early[i].Failure)
		}
	}
	return n
}
