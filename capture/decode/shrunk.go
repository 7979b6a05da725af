package decode

// The MTU of the sender's own interface may shrink too, of which no packet tells: no router is
// asked, and whole packets are acknowledged. The FPDUs alone show it then. A sender makes those
// within a message as large as its segments may be, so that packets that are aligned if they are
// cut at the size of their first FPDU, and are not at the size that is assumed, are in doubt. A
// sender that has followed the path until then is taken to follow it still, if there are enough
// of them; of another it is not known whether it never was aligned.
const (
	enoughShrunk = 8 // packets in a row
	// FPDUs take multiples of four bytes, so that the largest one may be up to so much smaller
	// than a segment that has not shrunk.
	remainder = 3
)

// A tally is how packets count that are cut at some size.
type tally struct{ segments, aligned uint64 }

// tallied returns how a packet counts if it is cut at a size.
func (c *cutting) tallied(length, size int) tally {
	return tally{uint64((length + size - 1) / size), uint64(c.aligned)}
}

// whole reports whether all is aligned.
func (t tally) whole() bool { return t.segments == t.aligned }

// add adds packets.
func (t *tally) add(o tally) { t.segments, t.aligned = t.segments+o.segments, t.aligned+o.aligned }

// A series is of packets in a row that are in doubt, and counted as unknown.
type series struct {
	size     int    // at which they would be aligned, 0 if there are none
	first    uint64 // number of the first one
	packets  uint64
	assumed  tally // cut at the size that was assumed, if it is known,
	shrunken tally // and at the one that shows
}

// shrunk reports whether it is not known at what size a packet is cut because its FPDUs show
// another size than the assumed one. It counts the packet then.
func (h *half) shrunk(c *chunk) bool {
	p, now, length := &h.path, h.cutOf(c.packet.Number), c.segment.Length
	if length <= max(now.size, now.least) {
		return false
	}
	var assumed tally
	if now.size > 0 {
		assumed = c.cutting.tallied(length, now.size)
	}
	switch {
	case now.size > 0 && assumed.whole():
		p.followed = max(p.followed, c.within)
	case h.shows(c, now):
		h.goesOn(c, assumed)
		h.shrinks(c.packet.Number, now)
		return true
	}
	p.series = series{}
	return false
}

// shows reports whether all of a packet is aligned if it is cut at the size of its first FPDU,
// which is too small for segments of the assumed size, or of the SYNs' if none is assumed.
func (h *half) shows(c *chunk, now cut) bool {
	most := now.size
	if most == 0 {
		most = h.mss()
	}
	size := c.within
	return size >= most/2 && size < most-remainder && size != h.path.refuted &&
		c.own.tallied(c.segment.Length, size).whole()
}

// goesOn adds a packet to the series, or begins another one.
func (h *half) goesOn(c *chunk, assumed tally) {
	s := &h.path.series
	if s.size != c.within {
		*s = series{size: c.within, first: c.packet.Number}
	}
	s.packets++
	s.assumed.add(assumed)
	s.shrunken.add(c.own.tallied(c.segment.Length, s.size))
	h.publicHalf().Wire.Unknown++
}

// shrinks takes the size that a series shows as that of the path, from its first packet on, if
// there are enough of them, and the sender has followed a larger one, or the other direction has it.
func (h *half) shrinks(packet uint64, now cut) {
	p, s := &h.path, h.path.series
	if s.packets < enoughShrunk || s.size >= p.followed && s.size != now.least {
		return
	}
	h.decided(s.shrunken)
	h.change(cut{from: s.first, size: s.size})
	h.peer().narrowed(packet, s.size)
	p.unacked = p.unacked[:0] // which were cut at another size than is kept with them
}

// agrees takes note of an acknowledgment that lies where a packet was cut at the assumed size.
// It cannot lie there if the packet was cut at the size that a series shows.
func (h *half) agrees(packet uint64, at int) {
	p, s := &h.path, h.path.series
	if s.size == 0 || packet < s.first || at%s.size == 0 {
		return
	}
	h.decided(s.assumed)
	p.refuted, p.series = s.size, series{}
}

// decided counts the packets of a series, now that it is known how they were cut.
func (h *half) decided(t tally) {
	w, n := &h.publicHalf().Wire, h.path.series.packets
	w.Unknown, w.Cut = w.Unknown-n, w.Cut+n
	w.Segments, w.Aligned = w.Segments+t.segments, w.Aligned+t.aligned
}
