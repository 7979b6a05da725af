package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
)

// Header Alignment: each TCP segment begins with an FPDU and holds whole ones.
//
// TCP cuts what it is given at the EMSS, from where a record of it ends: the LLP ends one
// after each slice that Output gives. So the bytes of a Gather are counted in TCP
// segments. An FPDU that fills the rest of one exactly lets the next begin with the next
// FPDU. Where no FPDU fits into what is left, a record ends, and the segment stays short.
//
// RFC 5044, section 5.1: "MPA transmitters SHOULD also use whatever facilities the TCP
// stack presents to cause the TCP transmitter to start TCP segments at FPDU boundaries.
// Multiple FPDUs MAY be packed into a single TCP segment as determined by the EMSS
// calculation as long as they are entirely contained in the TCP segment." [S04]

// segments are the TCP segments that a Gather's bytes will be cut into.
type segments struct {
	emss   int   // zero: it does not matter where they are cut
	record int   // bytes that a record may have; it has a segment in any case
	begin  int   // byte of the arena with which the record under way begins
	from   int   // and the segment under way
	ends   []int // of records within the arena
	long   bool  // an FPDU is longer than a segment
}

// A Gather with maxRecords is full. One FPDU may add two: it ends the segment before it, and
// is longer than one itself.
const maxRecords = 64

// full reports whether a Gather of so many bytes ends here: at the end of the last
// segment that it has room for.
func (s *segments) full(n int) bool {
	return s.emss > 0 && (len(s.ends) >= maxRecords || n == s.from && n > 0 && n+s.emss > gatherBytes)
}

// atRecord reports whether the bytes end with a record, which is as much as TCP takes as
// one piece: a shorter one after it would cost as much again.
func (s *segments) atRecord() bool { return s.begin > gatherBytes/2 && s.from == s.begin }

// framed takes note of an FPDU that ends at a byte of the arena.
func (s *segments) framed(at int) {
	switch n := at - s.from; {
	case s.emss == 0:
	case n == s.emss:
		s.from = at
		if at+s.emss > s.begin+s.record {
			s.endRecord(at)
		}
	case n > s.emss:
		s.long = true
		s.endSegment(at)
	}
}

// endSegment ends the segment under way at a byte of the arena, and a record with it.
func (s *segments) endSegment(at int) {
	if at > s.from {
		s.from = at
		s.endRecord(at)
	}
}

// endRecord ends the record under way at a byte of the arena that lies after its beginning.
func (s *segments) endRecord(at int) {
	s.ends = append(s.ends, at)
	s.begin = at
}

// room returns the largest ULPDU whose FPDU fits into the segment under way.
func (q *Machine) room(g *Gather) int {
	return layout.Room(q.tx.Offset(), g.emss-(len(g.arena)-g.from), q.MarkersSend)
}

// nextOf is Segmenter.Next for what is left of the TCP segment under way or, if that is
// too little, for the one after it.
//
// RFC 5044, section 4.5: "If one or more FPDUs are already packed into a TCP segment, such
// that the remaining room is less than 128 octets, MPA MUST NOT provide a MULPDU smaller
// than 128. In this case, MPA would typically provide a MULPDU for the next full sized
// segment, but may still pack the next FPDU into the small remaining room, provide that
// the next FPDU is small enough to fit."
func (q *Machine) nextOf(seg *ddp.Segmenter, g *Gather, h *ddp.Header) (n int, ok bool) {
	mulpdu, another := q.mulpduFor(seg, g)
	if another {
		g.endSegment(len(g.arena))
	}
	return seg.Next(h, mulpdu)
}

// mulpduFor returns the MULPDU for the next segment of a message, and whether that begins another TCP segment.
func (q *Machine) mulpduFor(seg *ddp.Segmenter, g *Gather) (mulpdu int, another bool) {
	if g.emss == 0 {
		return q.MULPDU, false
	}
	room := q.room(g)
	if n := min(room, q.MULPDU); ends(seg, n) {
		return n, false
	}
	if another = room < layout.MinMULPDU; another { // [S06]
		room = layout.Room(q.tx.Offset(), g.emss, q.MarkersSend)
	}
	return q.share(room), another
}

func ends(seg *ddp.Segmenter, mulpdu int) bool {
	_, last := seg.Peek(mulpdu)
	return last
}

// share is how much of the room for one ULPDU is taken by the next one of a message: all of
// it, unless that is a little more than the MULPDU, which reckons with as many markers as
// there can be. Then enough is left for a second one to fill the segment.
func (q *Machine) share(room int) int {
	const second = layout.MinMULPDU + 12 // and the frame of an FPDU, and its pad
	if room < q.MULPDU {
		return max(room, layout.MinMULPDU)
	}
	if room == q.MULPDU || room-q.MULPDU >= second || room < 2*second {
		return q.MULPDU
	}
	return room - second
}

// makeRoom ends the TCP segment under way if it has no room for an FPDU around n bytes.
func (q *Machine) makeRoom(g *Gather, n int) {
	if g.emss > 0 && q.room(g) < n {
		g.endSegment(len(g.arena))
	}
}

// countWrite counts what was written to the LLP. Where the EMSS has changed meanwhile, TCP
// may have cut it elsewhere.
func (q *Machine) countWrite(g *Gather) {
	q.stats.Writes++
	if g.emss > 0 && g.emss == q.EMSS && !g.long {
		q.stats.AlignedWrites++
	}
}

// SetMULPDU follows a change of the EMSS. Segments that are built stay as they are. The
// last two are as in Params. RFC 5041, section 3, has the lower layer tell DDP of each change.
func (q *Machine) SetMULPDU(n, emss, record int) {
	q.MULPDU, q.EMSS, q.Record = n, emss, record
	if q.Layer == LayerMessages { // which has no TCP segments
		q.MULPDU, q.EMSS = min(n, layout.MaxMULPDU), 0
	}
}
