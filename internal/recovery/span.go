package recovery

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/layout"
)

// A buffer grows at both ends: what is in it is buf[head:].
type buffer struct {
	buf  []byte
	head int
}

func (o *buffer) len() int      { return len(o.buf) - o.head }
func (o *buffer) bytes() []byte { return o.buf[o.head:] }

// append adds bytes at the end. A front half that is free is used again rather than
// to grow.
func (o *buffer) append(b []byte) {
	if n := o.len(); len(o.buf)+len(b) > cap(o.buf) && o.head >= n+len(b) {
		o.buf, o.head = o.buf[:copy(o.buf, o.bytes())], 0
	}
	o.buf = append(o.buf, b...)
}

// prepend adds bytes in front. It leaves as much free in front as there is, so that
// each byte is moved once on average.
func (o *buffer) prepend(b []byte) {
	if o.head < len(b) {
		n := o.len() + len(b)
		grown := make([]byte, 2*n)
		copy(grown[n+len(b):], o.bytes())
		o.buf, o.head = grown, n+len(b)
	}
	o.head -= len(b)
	copy(o.buf[o.head:], b)
}

// drop removes n bytes in front.
func (o *buffer) drop(n int) {
	if o.head += n; o.head == len(o.buf) {
		o.buf, o.head = o.buf[:0], 0
	}
}

// cut removes n bytes at the end.
func (o *buffer) cut(n int) { o.buf = o.buf[:len(o.buf)-n] }

// join adds what is in p at the end, and may take p's buffer for that: the shorter one is
// copied.
func (o *buffer) join(p *buffer) {
	if o.len() > p.len() {
		o.append(p.bytes())
		return
	}
	p.prepend(o.bytes())
	o.buf, o.head, p.buf, p.head = p.buf, p.head, o.buf[:0], 0
}

// A span is a piece of the stream after the part in order. Either FPDUs were found
// in it from the first byte to the last, and nothing is held; or its bytes are held
// as they are not yet part of any FPDU.
type span struct {
	start, end uint64
	placed     bool

	// placed
	fpdus, marks int

	// held
	buffer
	dirty bool
	bad   bool        // an FPDU begins at start and is not valid
	cands []candidate // starts of FPDUs by its markers, not yet decided
}

// A candidate is where an FPDU begins by one marker. [R03]
type candidate struct{ marker, start uint64 }

// find returns the index of the first span that ends after an offset.
func (r *Receiver) find(offset uint64) int {
	i, _ := slices.BinarySearchFunc(r.spans, offset, func(s span, offset uint64) int {
		if s.end > offset {
			return 1
		}
		return -1
	})
	return i
}

// remove removes a span. Its buffer is kept for the next one.
func (r *Receiver) remove(i int) {
	if s := &r.spans[i]; cap(s.buf) > cap(r.spare) && cap(s.buf) <= layout.MaxFPDU {
		r.spare = s.buf[:0]
	}
	r.spans = slices.Delete(r.spans, i, i+1)
	if i < r.dirty {
		r.dirty--
	}
}

// touching reports whether span i begins right after the one in front of it.
func (r *Receiver) touching(i int) bool {
	return i > 0 && i < len(r.spans) && r.spans[i-1].end == r.spans[i].start
}

// located reports whether an FPDU begins where span i does.
func (r *Receiver) located(i int) bool { return r.touching(i) && r.spans[i-1].placed }

// blocked reports whether span i, which is held, is followed by FPDUs that were
// found, so that nothing will ever come after it.
func (r *Receiver) blocked(i int) bool { return r.touching(i+1) && r.spans[i+1].placed }

// nextPiece takes the next part of the segment that was not there yet.
func (r *Receiver) nextPiece() bool {
	seg := &r.segment
	edge := r.next
	if r.synced {
		edge = r.edge()
	}
	for len(seg.b) > 0 {
		if seg.offset < edge {
			r.repeated(edge)
			continue
		}
		i := r.find(seg.offset)
		if i < len(r.spans) && r.spans[i].start <= seg.offset {
			r.repeated(r.spans[i].end)
			continue
		}
		n := len(seg.b)
		if i < len(r.spans) {
			n = int(min(uint64(n), r.spans[i].start-seg.offset))
		}
		return r.acceptBytes(i, n, r.synced && seg.offset == edge)
	}
	return false
}

// repeated passes over bytes of the segment that were there before.
//
// RFC 5044, Appendix A.3: "the MPA/TCP implementation ensures that any TCP segments
// that duplicate data already received and processed [...] do not overwrite already
// received and processed FPDUs." [R06]
func (r *Receiver) repeated(to uint64) {
	n := min(uint64(len(r.segment.b)), to-r.segment.offset)
	r.stats.Repeated += n
	r.advance(int(n))
}

func (r *Receiver) advance(n int) {
	r.segment.offset += uint64(n)
	r.segment.b = r.segment.b[n:]
}

// acceptBytes accepts n bytes of the segment, in order or in front of span i.
func (r *Receiver) acceptBytes(i, n int, inOrder bool) bool {
	offset, b := r.segment.offset, r.segment.b[:n]
	switch {
	case inOrder:
		r.in, r.fresh = b, true
	case !r.hasRoom(i, offset, n):
		if r.cfg.Resync && r.raise() && (r.giveUp() || r.findBoundary()) {
			return true // and try again
		}
		r.stats.Dropped += uint64(n)
		r.emit(Event{Kind: Dropped, Offset: offset, End: offset + uint64(n)})
	default:
		r.hold(i, offset, b)
	}
	r.advance(n)
	return true
}

// hasRoom reports whether bytes in front of span i can be kept: there is always room
// next to what is there.
func (r *Receiver) hasRoom(i int, offset uint64, n int) bool {
	return len(r.spans) < maxSpans || offset == r.next ||
		i > 0 && r.spans[i-1].end == offset ||
		i < len(r.spans) && r.spans[i].start == offset+uint64(n)
}

// hold keeps a copy of bytes that go in front of span i, together with what is held
// right before and after them.
func (r *Receiver) hold(i int, offset uint64, b []byte) {
	end := offset + uint64(len(b))
	before := i > 0 && r.spans[i-1].end == offset && !r.spans[i-1].placed
	behind := i < len(r.spans) && r.spans[i].start == end && !r.spans[i].placed
	switch {
	case before:
		i--
		r.spans[i].append(b)
		r.spans[i].end = end
	case behind:
		r.spans[i].prepend(b)
		r.spans[i].start = offset
	default:
		r.spans = slices.Insert(r.spans, i, span{start: offset, end: end})
		r.spans[i].buf, r.spare = r.spare, nil
		r.spans[i].append(b)
	}
	if before && behind {
		r.merge(i)
	}
	r.note(i, offset, end)
}

// merge joins two spans that are held and touch.
func (r *Receiver) merge(i int) {
	s, behind := &r.spans[i], &r.spans[i+1]
	s.join(&behind.buffer)
	s.end = behind.end
	s.cands = append(s.cands, behind.cands...)
	r.remove(i + 1)
}
