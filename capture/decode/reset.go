package decode

import "github.com/goiwarp/iwarp/capture"

// wasReset reports the RST by which a connection has failed, with the direction of its sender.
func (c *conn) wasReset() {
	p := c.pub
	switch p.Failed() {
	case "refused":
		e := &p.Halves[capture.Backward].End
		c.report(findRefused, e.Dir, e.Offset, e.Packet, "connection refused: an RST answers the SYN",
			"nobody listens on the port, or a firewall answers in its place")
	case "reset":
		e, by := c.rst()
		c.report(findReset, by, p.Halves[by].End.Offset, e.Packet, "the connection is reset: this end has sent an RST",
			"its process was killed, or has closed the connection with bytes unread, or has given up: what was under way is lost")
	}
}

// rst returns the end of a direction by an RST, and the direction that the RST is in: its own
// one may have ended before, by a FIN.
func (c *conn) rst() (e *capture.End, by capture.Dir) {
	e = &c.pub.Halves[capture.Forward].End
	if e.Reason != capture.EndRST {
		e = &c.pub.Halves[capture.Backward].End
	}
	if e.Peer {
		return e, e.Dir.Peer()
	}
	return e, e.Dir
}

// empty reports how a connection has ended that is expected to be iWARP, and of which the capture
// has no bytes. wasReset reports an RST.
func (c *conn) empty() {
	h := &c.halves[capture.Forward]
	if p := h.peer(); p.end.Reason == capture.EndFIN &&
		(h.end.Reason != capture.EndFIN || p.end.Packet.Number < h.end.Packet.Number) {
		h = p // which has closed first
	}
	e := &h.end
	switch {
	case e.Reason == capture.EndRST:
	case !c.tcp.OpenerKnown():
		c.report(findOpen, e.Dir, 0, e.Packet, "the capture begins after the connection, and has no byte of it",
			"begin the capture before the connection is opened")
	case e.Reason == capture.EndFIN:
		c.report(findClosed, e.Dir, 0, e.Packet, "the connection is closed before a byte was sent: this end has closed it first", "")
	default:
		c.report(findOpen, e.Dir, 0, e.Packet, "no byte was sent up to the end in the capture: "+e.Reason.String(), "")
	}
}
