package decode

import "github.com/goiwarp/iwarp/capture"

// adviceDropped is the advice about a finding that may be due to packets that were dropped from the capture.
const adviceDropped = "a note only: the capture says that it lacks packets from before, and it may be that, and no end's fault"

// droppedFrom reports whether packets may have been dropped from the capture since the connection was opened: they were
// since its SYN was seen, or ever if its first packet is another one.
func (c *conn) droppedFrom() bool {
	first := c.tcp.First.Number
	if c.over == nil && c.tcp.Halves[capture.Forward].SYN == first {
		return c.d.dropped > first
	}
	return c.d.dropped > 0
}

// startupDropped reports whether a startup that is not complete may be so for packets that were dropped.
func (c *conn) startupDropped() bool {
	return !c.pub.Agreed && !c.pub.Midstream && !c.pub.Rejected && c.droppedFrom()
}

// drop takes note of packets that were dropped in front of the one of this number.
func (d *Decoder) drop(n, number uint64) {
	if n > 0 {
		d.totals.Dropped += n
		d.dropped = number
	}
}
