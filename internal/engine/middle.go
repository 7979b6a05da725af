package engine

import (
	"math"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// The middle of a message is its segments but for the first and the last. Where these are small, as on a link whose
// MTU is 1500, what is done for each of them takes longer than the copy of its payload. So what is the same for all
// is done once:
//
//   - on the way out, the memory of a Send, a Write or a Read Response is judged and locked once for as many segments as a Gather has room for;
//   - on the way in, a segment of a Send, Write or Read Response whose header is that of the one before, but for the MO or TO that follows, has
//     passed that one's checks; and memory is looked up, judged and locked for as many as there are in one Input, or a Run takes.
//
// Nothing is refused here: what may not go on in this way is left to those who take a segment by itself, and find out
// why.

// A cutter cuts memory into the payload of segments.
type cutter struct {
	q     *Machine
	g     *Gather
	seg   *ddp.Segmenter
	count uint64 // of segments
	took  int    // bytes
	over  bool   // it takes no more

	// What was before the FPDU that is being built, for a cutter that is careful.
	careful   bool
	building  bool
	segBefore ddp.Segmenter
	draft     draft
}

// BeCareful tells that the memory may turn out to have vanished.
func (c *cutter) BeCareful() { c.careful = true }

// Take builds segments of the bytes, as many as are whole and have room. After bytes that it has left it takes
// none: a segment that is in two pieces of memory is not built here, and what follows in the second is not the next
// of the message.
func (c *cutter) Take(p []byte) {
	q, g := c.q, c.g
	for len(p) > 0 && !c.over && !q.enough(g) {
		mulpdu, another := q.mulpduFor(c.seg, g)
		n, last := c.seg.Peek(mulpdu)
		if c.over = last || n == 0 || n > len(p); c.over {
			return
		}
		if another {
			g.endSegment(len(g.arena))
		}
		if c.careful {
			c.building, c.segBefore, c.draft = true, *c.seg, draft{tx: q.tx, at: len(g.arena)}
		}
		g.arena = q.tx.Frame(g.arena, c.seg.AppendMiddle(g.header[:0], n), p[:n])
		c.building = false
		g.framed(len(g.arena))
		c.count++
		c.took += n
		p = p[n:]
	}
}

// cutting returns a cutter of the message under way, and how many bytes that has use for at most: none where
// segments are built one by one.
func (q *Machine) cutting(g *Gather, seg *ddp.Segmenter) (c *cutter, most int) {
	if q.Layer == LayerMessages || q.cfg.Trace != nil {
		return nil, 0
	}
	most = min(int(seg.Left()), gatherBytes-len(g.arena))
	if n, last := seg.Peek(q.MULPDU); last || n > most {
		return nil, 0
	}
	g.cut = cutter{q: q, g: g, seg: seg}
	return &g.cut, most
}

// cutDone counts what was built, and drops the FPDU for which there was no memory.
func (q *Machine) cutDone(g *Gather, op rdmap.Opcode) (took int) {
	c := g.cut
	if c.building {
		*c.seg = c.segBefore
		q.dropFPDU(g, c.draft)
	}
	g.cut = cutter{}
	q.stats.SentFPDUs += c.count
	q.stats.Sent[op].Bytes += uint64(c.took)
	return c.took
}

// sendMiddle goes on with a Send or Write.
func (q *Machine) sendMiddle(g *Gather, e *sendEntry, op rdmap.Opcode) {
	c, most := q.cutting(g, &e.seg)
	if e.SGL.Len() == 0 || e.ahead > 0 || most <= 0 {
		return
	}
	s := &e.SGL.Elements()[e.sge]
	q.cfg.Memory.LocalLoad(c, s.Region, &s.Term, s.Offset+e.off, min(most, s.Length-e.off))
	e.off += q.cutDone(g, op)
}

// respondMiddle goes on with a Read Response.
func (q *Machine) respondMiddle(g *Gather, req *rdmap.ReadRequest) {
	if c, most := q.cutting(g, &q.response); most > 0 {
		q.cfg.Memory.Load(c, most, req.SrcSTag, req.SrcTO)
		req.Advance(uint32(q.cutDone(g, rdmap.OpReadResponse)))
	}
}

// sequelOf has the segment go by goesOn that follows one which has passed all checks and is in place.
func (q *Machine) sequelOf(s *ddp.Segment) {
	if q.cfg.Trace == nil {
		q.sequel.After(s)
	}
}

// goesOn takes a segment in the middle of a Send, Write or Read Response whose segment before was in order: only its
// place is still to be judged, or that is within what was judged already. It reports false, and does nothing, if it
// is another segment, or may have no place.
func (q *Machine) goesOn(ulpdu []byte) bool {
	next := q.sequel
	p, at, ok := next.Take(ulpdu)
	if !ok || q.ReceiverNotReady() {
		return false
	}
	_, op := rdmap.ParseControl(next.RsvdULP())
	// which may be in place there
	if uint64(len(p)) > q.roomAt(op, at) || op != rdmap.OpWrite && q.ahead.segments() > 0 {
		return false
	}
	if !q.placing.Place(at, p) && !(q.reachFor(op, next.STag(), at, len(p)) && q.placing.Place(at, p)) {
		return false
	}
	q.sequel = next
	q.came(op, len(p))
	q.stats.Received[op].Bytes += uint64(len(p))
	q.drain.drained(len(p))
	return true
}

// roomAt returns how many bytes of payload a segment in the middle of a message may have, as far as that is known
// without its memory. at is its TO or MO.
func (q *Machine) roomAt(op rdmap.Opcode, at uint64) uint64 {
	switch op {
	case rdmap.OpWrite:
		return math.MaxUint64
	case rdmap.OpReadResponse:
		return uint64(max(q.orq.Left(), 1) - 1) // the last byte is in the last segment
	default:
		return max(q.capacity, at) - at
	}
}

// came counts the payload of a segment in the middle of a message.
func (q *Machine) came(op rdmap.Opcode, n int) {
	switch op {
	case rdmap.OpWrite:
		q.written += uint64(n)
	case rdmap.OpReadResponse:
		q.orq.Came(uint32(n))
	default:
		q.queues[rdmap.QNSend].PlaceNext(n)
	}
}

// reachFor takes the locks of memory from the place of a segment with n bytes on.
func (q *Machine) reachFor(op rdmap.Opcode, stag uint32, at uint64, n int) bool {
	q.placing.End()
	switch op {
	case rdmap.OpWrite:
		return q.cfg.Memory.BeginPlace(&q.placing, stag, at, n)
	case rdmap.OpReadResponse:
		read, _, _ := q.orq.Front()
		return q.reachElement(q.sink(read.ID), at-read.SinkTO, at, n)
	default:
		return q.reachReceive(at, n)
	}
}

// reachReceive is reachFor in the memory of the receive. A segment that goes to two of its elements is not in reach,
// and one with some of the prefix, which lies before them all (from is beyond every element then).
func (q *Machine) reachReceive(mo uint64, n int) bool {
	from, sgl := mo-q.prefix(), q.current.SGL.Elements()
	for i := range sgl {
		if length := uint64(sgl[i].Length); from >= length {
			from -= length
			continue
		}
		return q.reachElement(&sgl[i], from, mo, n)
	}
	return false
}

// reachElement takes the locks of an element's memory from an offset in it on, which is named by at.
func (q *Machine) reachElement(e *SGE, from, at uint64, n int) bool {
	return q.cfg.Memory.BeginLocalPlace(&q.placing, e.Region, &e.Term, e.Offset+int(from), n, e.Length-int(from), at)
}
