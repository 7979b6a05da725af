package capture

import (
	"cmp"
	"maps"
	"slices"
)

// A Tracker sorts packets into TCP connections and puts the bytes of each
// direction in order. It does not allocate for a packet of a known connection
// that is in order. It is not safe for concurrent use.
type Tracker struct {
	cfg     Config
	sink    Sink
	history history

	table  map[tuple]*Connection
	gone   forgotten
	recent *Connection // that the last packet was of
	alive  queue
	over   queue // connections of which both directions have ended
	opened int
	held   int // memory of pieces of all connections in bytes
	now    Stamp

	head    tcpHeader
	segment Segment
}

// NewTracker returns a Tracker that tells sink what it finds.
func NewTracker(cfg Config, sink Sink) *Tracker {
	cfg = cfg.withDefaults()
	return &Tracker{cfg: cfg, sink: sink, history: newHistory(), table: map[tuple]*Connection{},
		gone: newForgotten(cfg.MaxConnections)}
}

// Packet takes the next packet of the capture. It does not keep any of it.
func (t *Tracker) Packet(p *Packet) {
	t.now = p.stamp()
	if why := t.head.parse(p); why != 0 {
		if why == SkipNotTCP {
			t.tooBig(p)
		}
		t.sink.Skipped(p, why)
		return
	}
	c := t.connection()
	if c == nil {
		t.sink.Skipped(p, SkipForgotten)
		return
	}
	d := c.dir(&t.head)
	t.age(c)
	h := &c.Halves[d]
	t.declare(c, h, d)
	t.observe(c, h, d, p)
	t.advance(c, h, d)
	if !c.Over() {
		c.moveTo(&t.alive)
		return
	}
	c.moveTo(&t.over)
	for t.over.length > max(t.cfg.MaxConnections/4, 1) {
		t.forget(t.over.oldest, EndEvicted)
	}
}

// Flush ends all directions, and forgets all connections, since the capture is
// over.
func (t *Tracker) Flush() {
	all := slices.SortedFunc(maps.Values(t.table),
		func(a, b *Connection) int { return cmp.Compare(a.Number, b.Number) })
	for _, c := range all {
		t.forget(c, EndCapture)
	}
}

// connection returns the connection of the packet. It may be a new one, and is nil if it was forgotten.
func (t *Tracker) connection() *Connection {
	c := t.recent
	if c == nil || c.tuple != t.head.tuple {
		c = t.table[t.head.tuple]
	}
	if c != nil && c.replacedBy(&t.head) {
		t.forget(c, EndReplaced)
		c = nil
	}
	if c == nil && t.gone.has(&t.head) {
		return nil
	}
	if c == nil {
		c = t.open()
	}
	t.recent = c
	return c
}

// dir returns the direction of a packet.
func (c *Connection) dir(h *tcpHeader) Dir {
	if h.swapped == c.swapped {
		return Forward
	}
	return Backward
}

// replacedBy reports whether a packet begins another connection between the same
// ends: with a SYN that cannot be that of what its sender has sent so far.
func (c *Connection) replacedBy(h *tcpHeader) bool {
	if !h.flags.Has(SYN) || h.flags.Has(RST) {
		return false
	}
	d := c.dir(h)
	half, peer := &c.Halves[d], &c.Halves[d.Peer()]
	opens := !h.flags.Has(ACK)
	switch {
	case opens != (d == Forward) && peer.SYN == 0: // if not, both have opened at once
		return true
	case half.started:
		return half.start != h.seq+1
	}
	return half.Count.Packets > 0
}

// open makes a connection of a packet, and room for it.
func (t *Tracker) open() *Connection {
	for len(t.table) >= t.cfg.MaxConnections {
		t.makeRoom()
	}
	c := &Connection{Number: t.opened, First: t.now, Last: t.now, tuple: t.head.tuple, swapped: t.head.swapped}
	t.opened++
	if t.head.flags.Has(SYN | ACK) {
		c.swapped = !c.swapped // the answer to the end that opened it
	}
	for d := range c.Halves {
		c.Halves[d].WindowScale = -1
	}
	a, b := c.tuple.ends()
	if c.swapped {
		a, b = b, a
	}
	c.Halves[Forward].Addr, c.Halves[Backward].Addr = a, b
	t.table[c.tuple] = c
	t.alive.push(c)
	t.sink.Opened(c)
	return c
}

// makeRoom forgets a connection that is over, or the one that was quiet for longest.
func (t *Tracker) makeRoom() {
	c := t.over.oldest
	if c == nil {
		c = t.alive.oldest
		t.gone.add(c.tuple)
	}
	t.forget(c, EndEvicted)
}

// forget ends what has not ended of a connection, and drops it.
func (t *Tracker) forget(c *Connection, why EndReason) {
	t.finish(c, Forward, why)
	t.finish(c, Backward, why)
	t.sink.Forgotten(c)
	c.queue.remove(c)
	delete(t.table, c.tuple)
	if t.recent == c {
		t.recent = nil
	}
}

// age counts a packet, and lets acknowledgments become old.
func (t *Tracker) age(c *Connection) {
	silence := t.now.Time.Sub(c.Last.Time)
	c.Last = t.now
	c.packets++
	if c.packets-c.agedAt < uint64(t.cfg.GapPackets) && t.now.Time.Sub(c.agedTime) < t.cfg.GapTime {
		return
	}
	c.agedAt, c.agedTime = c.packets, t.now.Time
	for d := range c.Halves {
		c.Halves[d].ageAcks(silence >= t.cfg.GapTime)
	}
}

// declare notes what a packet's flags and options say of its sender.
func (t *Tracker) declare(c *Connection, h *Half, d Dir) {
	h.Count.Packets++
	seq, flags := t.head.seq, t.head.flags
	if flags.Has(RST) {
		t.head.payload, t.head.length = nil, 0 // a text at best (RFC 9293, section 3.5.3)
		return
	}
	if flags.Has(SYN) {
		t.synchronize(c, h, d)
		return
	}
	if !h.Timestamps && len(t.head.options) > 0 {
		options(t.head.options, func(kind byte, _ []byte) { h.Timestamps = h.Timestamps || kind == optionTimestamps })
	}
	if !h.started && (t.head.length > 0 || flags.Has(FIN)) {
		h.Midstream = true
		h.setStart(seq)
	}
}

// synchronize notes what a SYN says.
func (t *Tracker) synchronize(c *Connection, h *Half, d Dir) {
	h.setStart(t.head.seq + 1)
	if t.head.flags.Has(ACK) {
		c.Halves[d.Peer()].setStart(t.head.ack)
	}
	if h.SYN != 0 {
		return
	}
	h.SYN, h.ISN, h.Midstream = t.now.Number, t.head.seq, false
	options(t.head.options, func(kind byte, v []byte) {
		switch {
		case kind == optionMSS && len(v) == 2:
			h.MSS = int(v[0])<<8 | int(v[1])
		case kind == optionWindowScale && len(v) == 1:
			h.WindowScale = int(min(v[0], 14)) // RFC 7323, section 2.3
		case kind == optionSACKPermitted:
			h.SACK = true
		case kind == optionTimestamps:
			h.Timestamps = true
		}
	})
}
