package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// The middle of a message is its segments but for the first and the last. Where these are small, as on a link whose MTU is
// 1500, what is done for each of them takes longer than the copy of its payload. So what is the same for all is done once:
//
//   - on the way out, the memory of a Send, a Write or a Read Response is judged and locked once for as many segments as a Gather has room for;
//   - on the way in, a segment of a Write or Read Response whose header is that of the one before, but for the TO that follows, has
//     passed that one's checks; and memory is looked up, judged and locked for as many as there are in one Input, or a Run takes.
//
// Nothing is refused here: what may not go on in this way is left to those who take a segment by itself, and find out why.

// A cutter cuts memory into the payload of segments.
type cutter struct {
	q     *QP
	g     *Gather
	seg   *ddp.Segmenter
	count uint64 // of segments
	took  int    // octets
	over  bool   // it takes no more
}

// Take builds segments of the octets, as many as are whole and have room. After octets that it has left it takes none: a segment that
// is in two pieces of memory is not built here, and what follows in the second is not the next of the message.
func (c *cutter) Take(p []byte) {
	q, g := c.q, c.g
	for len(p) > 0 && !c.over && !q.enough(g) {
		mulpdu, another := q.mulpduFor(c.seg, g)
		n, last := c.seg.Peek(mulpdu)
		if c.over = last || n == 0 || n > len(p); c.over {
			return
		}
		if another {
			g.end(len(g.arena))
		}
		g.arena = q.tx.Frame(g.arena, c.seg.AppendMiddle(q.ddpHeader[:0], n), p[:n])
		g.framed(len(g.arena))
		c.count++
		c.took += n
		p = p[n:]
	}
}

// cutting returns a cutter of the message under way, and how many octets that has use for at most: none where segments are
// built one by one.
func (q *QP) cutting(g *Gather, seg *ddp.Segmenter) (c *cutter, most int) {
	if q.Layer == LayerMessages || q.cfg.Trace != nil {
		return nil, 0
	}
	most = min(int(seg.Left()), gatherOctets-len(g.arena))
	if n, last := seg.Peek(q.MULPDU); last || n > most {
		return nil, 0
	}
	g.cut = cutter{q: q, g: g, seg: seg}
	return &g.cut, most
}

// cutDone counts what was built.
func (q *QP) cutDone(g *Gather, op rdmap.Opcode) (took int) {
	c := g.cut
	g.cut = cutter{}
	q.stats.SentFPDUs += c.count
	q.stats.SentOctets[op] += uint64(c.took)
	return c.took
}

// sendMiddle goes on with a Send or Write.
func (q *QP) sendMiddle(g *Gather, e *sendEntry, op rdmap.Opcode) {
	c, most := q.cutting(g, &e.seg)
	if e.SGL.Len() == 0 || e.ahead > 0 || most <= 0 {
		return
	}
	s := &e.SGL.Elements()[e.sge]
	q.cfg.Memory.LocalLoad(c, s.Region, &s.Term, s.Offset+e.off, min(most, s.Length-e.off))
	e.off += q.cutDone(g, op)
}

// respondMiddle goes on with a Read Response.
func (q *QP) respondMiddle(g *Gather, req *rdmap.ReadRequest) {
	if c, most := q.cutting(g, &q.response); most > 0 {
		q.cfg.Memory.Load(c, most, req.SrcSTag, req.SrcTO)
		req.Advance(uint32(q.cutDone(g, rdmap.OpReadResponse)))
	}
}

// sequelOf has the segment go by goesOn that follows one which has passed all checks and is in place.
func (q *QP) sequelOf(s *ddp.Segment) {
	if q.cfg.Trace == nil {
		q.sequel.After(s)
	}
}

// goesOn takes a segment in the middle of a Write or Read Response whose segment before was in order: only its place is still to be
// judged, or that is within what was judged already. It reports false, and does nothing, if it is another
// segment, or may have no place.
func (q *QP) goesOn(ulpdu []byte) bool {
	next := q.sequel
	p, to, ok := next.Take(ulpdu)
	if !ok || q.Unready() {
		return false
	}
	_, op := rdmap.ParseControl(next.RsvdULP())
	if op == rdmap.OpReadResponse && uint32(len(p)) >= q.orq.Left() {
		return false
	}
	if !q.placing.Place(to, p) && !(q.reachFor(op, next.STag(), to, len(p)) && q.placing.Place(to, p)) {
		return false
	}
	q.sequel = next
	if op == rdmap.OpReadResponse {
		q.orq.Came(uint32(len(p)))
	} else {
		q.written += uint64(len(p))
	}
	q.stats.RecvOctets[op] += uint64(len(p))
	q.drain.drained(len(p))
	return true
}

// reachFor takes the locks of memory from the place of a segment with n octets on.
func (q *QP) reachFor(op rdmap.Opcode, stag uint32, to uint64, n int) bool {
	q.placing.End()
	if op == rdmap.OpWrite {
		return q.cfg.Memory.BeginPlace(&q.placing, stag, to, n)
	}
	read, _, _ := q.orq.Front()
	sink := &q.sq.At(read.ID).SGL.Elements()[0]
	return q.cfg.Memory.BeginLocalPlace(&q.placing, sink.Region, &sink.Term, sink.Offset+int(to-read.SinkTO), n, to)
}
