package recovery

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/layout"
)

// outOfOrder looks for an FPDU after what is in order, in the spans that changed.
func (r *Receiver) outOfOrder() bool {
	for ; r.dirty < len(r.spans); r.dirty++ {
		if r.spans[r.dirty].dirty && r.searchSpan(r.dirty) {
			return true
		}
	}
	return false
}

// searchSpan looks for an FPDU in span i, which is held, and reports whether there was one.
func (r *Receiver) searchSpan(i int) bool {
	s := &r.spans[i]
	if r.located(i) && !s.bad {
		size, valid := r.whole(i, s.start)
		switch {
		case valid:
			// RFC 5044, section 6: "Having found an FPDU by means of a Marker, an
			// optimized MPA/TCP receiver can find following contiguous FPDUs by
			// using the ULPDU Length fields (from FPDUs with valid CRCs)". [R03]
			r.reportFound(i, s.start, size, LocatedByLength)
			return true
		case size == 0:
			s.dirty = false
			return false
		}
		s.bad = true
	}
	return r.byMarker(i)
}

// whole judges the FPDU that begins at a stream offset in span i. size is 0 if it is
// not all there, but may come to be.
func (r *Receiver) whole(i int, at uint64) (size int, valid bool) {
	s := &r.spans[i]
	b := s.bytes()[at-s.start:]
	_, size, ok := r.measure(at, b)
	if !ok || len(b) < size {
		if r.blocked(i) {
			return len(b), false
		}
		return 0, false
	}
	valid = r.readMarkers(at, b, size) && (!r.cfg.CRC || layout.CRCValid(b[:size]))
	return size, valid
}

// byMarker looks for an FPDU in span i by the markers in it.
//
// RFC 5044, section 6: "a Marker can always be used to locate the beginning of an
// FPDU (in FPDUs with valid CRCs)." [R03]
func (r *Receiver) byMarker(i int) bool {
	s := &r.spans[i]
	kept := s.cands[:0]
	for k, c := range s.cands {
		switch size, verdict := r.judge(i, c); verdict {
		case candidateWaits:
			kept = append(kept, c)
		case candidateValid:
			s.cands = append(kept, s.cands[k+1:]...)
			r.reportFound(i, c.start, size, LocatedByMarker)
			return true
		}
	}
	s.cands, s.dirty = kept, false
	return false
}

// What is to become of a candidate.
const (
	candidateWaits = iota
	candidateValid
	candidateFails
)

func (r *Receiver) judge(i int, c candidate) (size, verdict int) {
	s := &r.spans[i]
	if c.start < s.start {
		if r.located(i) {
			return 0, candidateFails
		}
		return 0, candidateWaits
	}
	if s.bad && c.start == s.start {
		return 0, candidateFails
	}
	size, valid := r.whole(i, c.start)
	switch {
	case size == 0:
		return 0, candidateWaits
	case !valid, !r.cfg.CRC && c.marker >= c.start+uint64(size):
		return 0, candidateFails
	}
	return size, candidateValid
}

// note looks at the markers that are whole now that bytes from one offset to another
// came into span i, and keeps where they say that FPDUs begin. Each marker is looked
// at once, and each candidate judged once when it is whole, so that the work is
// bounded.
func (r *Receiver) note(i int, from, to uint64) {
	s := &r.spans[i]
	s.dirty, r.dirty = true, min(r.dirty, i)
	if !r.cfg.Markers || !r.known {
		return
	}
	from = max(s.start, from-min(from, layout.MarkerLen-1))
	for m := from + uint64(layout.NextMarker(r.place(from))); m < to &&
		m+layout.MarkerLen <= s.end; m += layout.MarkerInterval {
		start, ok := r.markerTarget(m, layout.Points(layout.FPDUPTR(s.bytes()[m-s.start:])))
		if n := len(s.cands); ok && (n == 0 || s.cands[n-1].start != start) {
			s.cands = append(s.cands, candidate{marker: m, start: start})
		}
	}
}

// markerTarget returns where the FPDU begins that a marker belongs to: at ULPDU_Length, or
// at the marker in front of that. ok is false if no FPDU can begin there.
//
// RFC 5044, section 4.3: "the location of the first octet of the previous FPDU header
// can be determined by subtracting the value of the given Marker from the current
// octet-stream sequence number". "An FPDUPTR value of 0x0000 means that immediately
// following the Marker is an FPDU header". [F09]
func (r *Receiver) markerTarget(marker uint64, ptr uint16) (start uint64, ok bool) {
	header := marker - uint64(ptr)
	switch phase := r.place(header) % layout.MarkerInterval; {
	case ptr == 0:
		return marker, true
	case uint64(ptr) > marker, phase == 0:
		return 0, false // before the origin, or a marker is there
	case phase == layout.MarkerLen:
		return header - layout.MarkerLen, header >= layout.MarkerLen
	}
	return header, true
}

// reportFound reports a valid FPDU in span i and takes it out of what is held.
func (r *Receiver) reportFound(i int, at uint64, size int, how Location) {
	s := &r.spans[i]
	b := s.bytes()[at-s.start:]
	length, _, _ := r.measure(at, b)
	ev := Event{
		Kind: Placed, Located: how, CRCValid: r.cfg.CRC, Offset: at, End: at + uint64(size),
		Length: length, ULPDU: r.ulpdu(at, b, length), Markers: r.marks, Bytes: b[:size:size],
	}
	r.split(i, at, ev.End)
	r.emit(ev)
}

// split takes an FPDU out of span i: what is before and after it stays held.
func (r *Receiver) split(i int, at, end uint64) {
	s := &r.spans[i]
	if before := int(at - s.start); before > 0 {
		behind := *s // what is before keeps the buffer or gets a new one: the shorter is copied
		behind.drop(before)
		s.cands, behind.cands = splitCandidates(s.cands, at)
		if before < behind.len() {
			s.buffer = buffer{buf: append([]byte(nil), s.bytes()[:before]...)}
		} else {
			behind.buffer = buffer{buf: append([]byte(nil), behind.bytes()...)}
			s.cut(s.len() - before)
		}
		s.end, behind.start = at, at
		i++
		r.spans = slices.Insert(r.spans, i, behind)
	}
	r.markPlaced(i, end)
}

// splitCandidates divides candidates into those before an offset and the others.
func splitCandidates(all []candidate, at uint64) (before, behind []candidate) {
	for _, c := range all {
		if c.start < at {
			before = append(before, c)
		} else {
			behind = append(behind, c)
		}
	}
	return before, behind
}

// markPlaced takes the FPDU at the start of span i out of it, and adds it to the FPDUs
// that were found right before and after it.
func (r *Receiver) markPlaced(i int, end uint64) {
	s := &r.spans[i]
	from, located := s.start, r.located(i)
	s.drop(int(end - from))
	s.start, s.bad, s.dirty = end, false, true
	s.cands = slices.DeleteFunc(s.cands, func(c candidate) bool { return c.start < end })
	if !located {
		r.spans = slices.Insert(r.spans, i, span{start: from, placed: true})
		i++
	}
	placed := &r.spans[i-1]
	placed.end = end
	placed.fpdus++
	placed.marks += len(r.marks)
	if r.spans[i].len() == 0 {
		r.remove(i)
		r.mergePlaced(i - 1)
	}
}

// mergePlaced joins two spans of FPDUs that touch.
func (r *Receiver) mergePlaced(i int) {
	if !r.blocked(i) {
		return
	}
	s, behind := &r.spans[i], &r.spans[i+1]
	s.end = behind.end
	s.fpdus += behind.fpdus
	s.marks += behind.marks
	r.remove(i + 1)
}
