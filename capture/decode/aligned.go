package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
)

// An Alignment counts the TCP segments of a direction as they are on the wire. Where an
// interface cuts them (segmentation offload), a capture on the sending host has packets
// larger than the MSS, which are counted here as the segments that they are cut into.
type Alignment struct {
	// MSS is the size in bytes at which they are cut: the smaller MSS of the two ends' SYNs,
	// less TCP's timestamps if there are any. It is 0 if no SYN was captured; then segments are
	// counted as they were captured.
	MSS int `json:"mss"`
	// MSSAtEnd is that size at the end of the connection, 0 if it is not known: the path's MTU
	// may change, since the packet of the number Changed, which is 0 if it did not.
	MSSAtEnd int    `json:"mss_at_end"`
	Changed  uint64 `json:"changed"`
	// Segments counts those with bytes of Full Operation, and Aligned those of them that begin
	// with an FPDU and hold whole ones, which is called Header Alignment.
	Segments uint64 `json:"segments"`
	Aligned  uint64 `json:"aligned"`
	// Cut counts the packets that are larger than the size at which they are cut.
	Cut uint64 `json:"cut"`
	// Unknown counts the packets of which it is not known at what size they are cut, once the
	// path has changed, or where their FPDUs are of another size, so that it may have. They are
	// in none of the other numbers.
	Unknown uint64 `json:"unknown"`
}

// Share is the share of the segments that are aligned, 1 if there are none.
func (a *Alignment) Share() float64 {
	if a.Segments == 0 {
		return 1
	}
	return float64(a.Aligned) / float64(a.Segments)
}

// timestampsLen is what the timestamps option takes in each segment, with its pad (RFC
// 7323, Appendix A).
const timestampsLen = 12

// mss returns at how many bytes the direction's segments are cut, 0 if that is not known.
func (h *half) mss() int {
	tcp := &h.c.tcp.Halves
	n := tcp[h.dir.Peer()].MSS
	if own := tcp[h.dir].MSS; own > 0 && (n == 0 || own < n) {
		n = own
	}
	if n > timestampsLen && tcp[h.dir].Timestamps {
		n -= timestampsLen
	}
	return n
}

// cutting is how the FPDUs lie to the segments that a packet is cut into.
type cutting struct {
	begun   int // number, from 1, of the last segment that an FPDU begins with
	ended   int // and of the last that ends with one, if it begins with one too
	aligned int // segments that begin with an FPDU and hold whole ones
}

// starts takes note of an FPDU that begins at an offset of the packet.
func (c *cutting) starts(at, mss int) {
	switch {
	case at == 0:
		c.begun = 1
	case mss > 0 && at%mss == 0:
		c.begun = at/mss + 1
	}
}

// ends takes note of an FPDU that ends at an offset of the packet of some bytes.
func (c *cutting) ends(at, length, mss int) {
	if mss == 0 {
		mss = length
	}
	number := (at + mss - 1) / mss
	if (at%mss == 0 || at == length) && c.begun == number && c.ended < number {
		c.ended = number
		c.aligned++
	}
}

// onWire adds a packet whose bytes are decided.
func (h *half) onWire(c *chunk) {
	if h.shrunk(c) {
		return
	}
	w, length, size := &h.publicHalf().Wire, c.segment.Length, c.cut.size
	if c.cut.unknown(length) || h.cutOf(c.packet.Number).unknown(length) {
		w.Unknown++
		return
	}
	if size == 0 || length <= size {
		w.Segments++
		w.Aligned += uint64(c.cutting.aligned)
		return
	}
	t := c.cutting.tallied(length, size)
	w.Cut++
	w.Segments += t.segments
	w.Aligned += t.aligned
	h.path.counted(c.packet.Number, t.segments, t.aligned)
}

// boundaries finds out whether TCP segments begin and end with the FPDU.
func (h *half) boundaries(f *FPDU) {
	if c := h.in.at(f.Offset); c != nil && c.segment.Offset <= f.Offset {
		f.Begins = c.segment.Offset == f.Offset
		c.begins = c.begins || f.Begins
		if f.Begins && f.HasSegment && !f.Segment.Last {
			c.within = f.Size()
		}
		c.cutting.starts(int(f.Offset-c.segment.Offset), c.cut.size)
		c.own.starts(int(f.Offset-c.segment.Offset), c.within)
	}
	if c := h.in.at(f.End - 1); c != nil && c.segment.Offset < f.End {
		f.Ends = c.segmentEnd() == f.End
		c.cutting.ends(int(f.End-c.segment.Offset), c.segment.Length, c.cut.size)
		c.own.ends(int(f.End-c.segment.Offset), c.segment.Length, c.within)
	}
}

// oversized reports the first FPDU that is far larger than TCP's segments, as the SYNs have their size. What an
// interface joins or cuts does not matter here: packets of a capture may be larger than segments.
//
// RFC 5044, section 4.5 has MULPDU follow from the EMSS, so that an FPDU fits a segment. [S01]
func (h *half) oversized(f *FPDU) {
	const far, least = 2, 536 // RFC 9293, section 3.7.1: the MSS where no other is known
	mss := h.mss()
	if h.full.large || mss == 0 || f.Err != nil || f.Cut > 0 || f.Size() <= far*max(mss, least) {
		return
	}
	h.full.large = true
	h.reportAt(findOversized, f, fmt.Sprintf("an FPDU of %s takes %s of at most %s",
		wording.Count(f.Size(), "byte"), wording.Count((f.Size()+mss-1)/mss, "TCP segment"),
		wording.Count(mss, "byte")),
		"nothing of it can be placed before the last segment has come, as its CRC is behind it: a lost segment holds all of it up, "+
			"and a receiver needs room for it; the sender should follow the EMSS")
}

// alignmentRows say how much of a direction is aligned.
func (h *Half) alignmentRows(d capture.Dir) (rows [][2]string) {
	w := &h.Wire
	name := d.String() + " alignment"
	if w.Segments > 0 {
		rows = append(rows, [2]string{name, fmt.Sprintf(
			"%.2f%% of %d TCP data segments begin with an FPDU and hold whole ones; the largest packet has %s",
			100*w.Share(), w.Segments, wording.Bytes(uint64(h.LargestSegment)))})
		name = ""
	}
	if w.Cut > 0 {
		rows = append(rows, [2]string{name, fmt.Sprintf(
			"  %s above the MSS of %s counted as the segments that the interface cuts: capture on the sending host, as a receiving one joins segments",
			wording.Count(w.Cut, "packet"), w.sizes())})
	}
	if w.Unknown > 0 {
		rows = append(rows, [2]string{name, fmt.Sprintf(
			"  %s more not judged: the path's MTU %s, and it is not known at what size the interface cuts them%s",
			wording.Count(w.Unknown, "packet"), wording.If(w.Changed > 0, "has changed",
				"may have changed"), w.since())})
	}
	return rows
}

// sizes says at which sizes packets were cut.
func (a *Alignment) sizes() string {
	if a.Changed == 0 || a.MSSAtEnd == 0 || a.MSSAtEnd == a.MSS {
		return fmt.Sprint(a.MSS)
	}
	return fmt.Sprintf("%d, at the end %d since packet %d as the path's MTU has changed,", a.MSS, a.MSSAtEnd, a.Changed)
}

// since says from where on a size is not known.
func (a *Alignment) since() string {
	if a.MSSAtEnd > 0 {
		return ""
	}
	return fmt.Sprintf(" since packet %d; capture ICMP too, on the sending host", a.Changed)
}
