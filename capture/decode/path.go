package decode

import "sort"

// How a direction's packets larger than a segment are cut is in no packet. It begins as the SYNs
// say, and changes when the path does: a router tells the sender so by ICMP, or, if the capture
// lacks that, acknowledgments do. A receiver acknowledges whole segments, so one that ends within
// a packet lies where the packet was cut. What contradicts the size there was makes it unknown,
// until a new size follows from enough of them. What FPDUs show is in shrunk.go.
const (
	maxCuts    = 16  // changes of a direction that are remembered
	maxUnacked = 256 // packets that acknowledgments are compared with
	enoughAcks = 8   // that lie within packets at multiples of one size
	// Any path takes segments of so many bytes (RFC 9293, section 3.7.1: MSS option), without
	// those of timestamps; and no path of IPv6 takes shorter packets (RFC 8200, section 5).
	leastMSS  = 536 - timestampsLen
	leastIPv6 = 1280
	leastIPv4 = 552 // Linux goes no lower (net.ipv4.route.min_pmtu), others do
)

// A cut is at how many bytes packets are cut into segments, from a packet on.
type cut struct {
	from  uint64 // number of the packet
	size  int    // in bytes; 0 if it is not known
	least int    // if it is not known: what is no larger is one segment all the same
}

// An unacked is a packet that is larger than a segment, and was not acknowledged yet.
type unacked struct {
	offset, end       uint64 // of the stream
	packet            uint64 // number
	size              int    // at which it is cut, 0 if that is not known
	segments, aligned uint64 // as it was counted, 0 if it was not yet
}

// A path is what is known of the sizes at which packets of a direction are cut.
type path struct {
	cuts    []cut
	told    uint64 // number of the router's packet that was taken in
	unacked []unacked
	acked   uint64
	divisor int // of where acknowledgments lie in packets, and
	acks    int // how many of them it is of

	series   series
	followed int // the largest first FPDU of packets that were aligned, as a whole, in bytes
	refuted  int // size that a series showed, and an acknowledgment contradicted
}

// unknown reports whether it is not known whether a packet of some bytes is cut.
func (c cut) unknown(length int) bool { return c.size == 0 && c.least > 0 && length > c.least }

// cutOf returns how a packet is cut, by its number: not at all if no SYN was captured.
func (h *half) cutOf(packet uint64) cut {
	cuts := h.path.cuts
	for i := len(cuts) - 1; i >= 0; i-- {
		if cuts[i].from <= packet {
			return cuts[i]
		}
	}
	return cut{size: h.mss()}
}

// observeSegment takes note of a packet of the connection, before its bytes are looked at.
func (c *conn) observeSegment(s *Segment) {
	for i := range c.halves {
		c.halves[i].routed()
	}
	h := &c.halves[s.Dir]
	h.sends(s)
	h.peer().heard(s.Packet.Number, h.acked)
}

// routed takes in what a router has said.
//
// RFC 8201, section 4: "A node MUST NOT reduce its estimate of the Path MTU below the IPv6
// minimum link MTU in response to a Packet Too Big message."
func (h *half) routed() {
	p := &h.c.tcp.Halves[h.dir].Path
	if p.Packet.Number == h.path.told {
		return
	}
	h.path.told = p.Packet.Number
	mtu, head, least := p.MTU, 20+20, leastIPv4
	if !h.c.tcp.Halves[h.dir].Addr.Addr().Is4() {
		mtu, head, least = max(mtu, leastIPv6), 40+20, leastIPv6
	}
	if h.c.tcp.Halves[h.dir].Timestamps {
		head += timestampsLen
	}
	limit, size := h.cutOf(p.Packet.Number).size, mtu-head
	if limit == 0 {
		limit = h.mss()
	}
	switch {
	case mtu < least:
		h.change(cut{from: p.Packet.Number, least: leastMSS})
	case limit == 0 || size < limit:
		h.resizes(p.Packet.Number, size)
	}
}

// resizes takes note of a new size from a packet on. That of the other direction, which most
// often has the same path, is not known then if it was larger.
func (h *half) resizes(packet uint64, size int) {
	h.change(cut{from: packet, size: size})
	h.peer().narrowed(packet, size)
}

// narrowed takes note that the other direction has a size from a packet on.
func (h *half) narrowed(packet uint64, size int) {
	if was := h.cutOf(packet); max(was.size, was.least) > size {
		h.change(cut{from: packet, least: size})
	}
}

// change adds a cut. Of too many, those in the middle are forgotten.
func (h *half) change(c cut) {
	p := &h.path
	p.divisor, p.acks, p.series, p.refuted = 0, 0, series{}, 0
	for len(p.cuts) > 0 && p.cuts[len(p.cuts)-1].from >= c.from || len(p.cuts) >= maxCuts {
		p.cuts = p.cuts[:len(p.cuts)-1]
	}
	p.cuts = append(p.cuts, c)
}

// sends takes note of a packet that may be cut. One whose bytes come again is acknowledged in
// pieces of whichever was there last, and shows nothing.
func (h *half) sends(s *Segment) {
	p := &h.path
	if s.Repeated > 0 {
		h.sendsAgain(s)
		return
	}
	now := h.cutOf(s.Packet.Number)
	most := max(now.size, now.least)
	inOrder := len(p.unacked) == 0 || p.unacked[len(p.unacked)-1].end <= s.Offset
	if most == 0 || s.Length <= most || !inOrder {
		return
	}
	if len(p.unacked) >= maxUnacked {
		p.unacked = p.unacked[:copy(p.unacked, p.unacked[1:])]
	}
	p.unacked = append(p.unacked, unacked{offset: s.Offset, end: s.End(), packet: s.Packet.Number, size: now.size})
}

// sendsAgain drops the packets that a segment has bytes of.
func (h *half) sendsAgain(s *Segment) {
	kept := h.path.unacked[:0]
	for _, u := range h.path.unacked {
		if u.end <= s.Offset || u.offset >= s.End() {
			kept = append(kept, u)
		}
	}
	h.path.unacked = kept
}

// heard takes note that everything before an offset is acknowledged.
func (h *half) heard(packet, acked uint64) {
	p := &h.path
	if acked <= p.acked {
		return
	}
	p.acked = acked
	n := 0
	for n < len(p.unacked) && p.unacked[n].end <= acked {
		n++
	}
	if n > 0 {
		p.unacked = p.unacked[:copy(p.unacked, p.unacked[n:])]
	}
	if len(p.unacked) > 0 && p.unacked[0].offset < acked {
		h.acknowledged(packet, int(acked-p.unacked[0].offset))
	}
}

// acknowledged takes note of an acknowledgment that lies some bytes within the first packet
// that is not acknowledged.
func (h *half) acknowledged(packet uint64, at int) {
	p := &h.path
	first := &p.unacked[0]
	if first.size > 0 && at%first.size == 0 {
		h.agrees(first.packet, at)
		return
	}
	if first.size > 0 {
		h.contradicted()
	}
	p.divisor = divisor(p.divisor, at)
	p.acks++
	most := h.mss()
	switch {
	case p.divisor <= most/2: // several sizes are possible
		p.divisor, p.acks = 0, 0
	case p.acks >= enoughAcks && p.divisor <= most && h.cutOf(packet).size == 0:
		h.resizes(packet, p.divisor)
	}
}

// contradicted takes back how the packets that are not acknowledged were counted.
func (h *half) contradicted() {
	p, w := &h.path, &h.publicHalf().Wire
	h.change(cut{from: p.unacked[0].packet, least: leastMSS})
	for i := range p.unacked {
		u := &p.unacked[i]
		if u.segments > 0 {
			w.Segments, w.Aligned = w.Segments-u.segments, w.Aligned-u.aligned
			w.Cut--
			w.Unknown++
		}
		u.size, u.segments, u.aligned = 0, 0, 0
	}
}

// pathAtEnd tells what holds at the end of the direction.
func (h *half) pathAtEnd(w *Alignment) {
	w.MSS, w.MSSAtEnd = h.mss(), h.mss()
	if cuts := h.path.cuts; len(cuts) > 0 {
		last := cuts[len(cuts)-1]
		w.MSSAtEnd, w.Changed = last.size, last.from
	}
}

// counted keeps how a packet was counted, if that may have to be taken back.
func (p *path) counted(packet, segments, aligned uint64) {
	i := sort.Search(len(p.unacked), func(i int) bool { return p.unacked[i].packet >= packet })
	if i < len(p.unacked) && p.unacked[i].packet == packet {
		p.unacked[i].segments, p.unacked[i].aligned = segments, aligned
	}
}

// divisor returns the greatest common divisor; that of 0 and n is n.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
