package recovery

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/layout"
)

// seeking is the search for a boundary where none is known.
type seeking struct {
	ended uint64 // FPDUs that end there or before were tried
	tried int    // bytes that were there then
}

// loseBoundary gives up the boundary at next: another one is searched for. An FPDU at next is not
// found again, as it is not valid or not whole.
func (r *Receiver) loseBoundary() bool {
	r.run.append(r.in)
	r.in, r.synced, r.fresh, r.doubt, r.waits, r.final = nil, false, false, false, false, false
	r.seeking = seeking{}
	if r.run.len() == 0 {
		return true
	}
	r.spans = slices.Insert(r.spans, 0, span{start: r.next, end: r.edge(), buffer: r.run})
	r.run = buffer{}
	r.noteRun()
	if edge := r.spans[0].end; r.touching(1) && !r.spans[1].placed {
		r.merge(0)
		r.note(0, edge, edge)
	}
	return true
}

// noteRun notes the markers of the first span, which was run. Those that were noted
// when it was a span before, are not again.
func (r *Receiver) noteRun() {
	s, noted := &r.spans[0], r.noted
	s.cands = slices.DeleteFunc(r.kept, func(c candidate) bool { return c.start < s.start })
	r.kept, r.noted = nil, [2]uint64{}
	r.note(0, s.start, noted[0])
	r.note(0, noted[1], s.end)
}

// reuse makes the first span, which is held, part of run.
func (r *Receiver) reuse() {
	s := &r.spans[0]
	r.kept, r.noted = s.cands, [2]uint64{s.start, s.end}
	r.run.join(&s.buffer)
	r.remove(0)
}

// findBoundary looks for a boundary from next on, and reports whether it made any progress.
func (r *Receiver) findBoundary() bool {
	if len(r.spans) == 0 || r.spans[0].start > r.next {
		return r.skipHole()
	}
	front := &r.spans[0]
	if front.placed {
		r.reportResync(Sync{
			Offset: r.next, Markers: r.cfg.Markers, CRC: r.cfg.CRC,
			FPDUs: front.fpdus, Agreeing: front.marks, Bytes: front.end - front.start,
			Confidence: ConfidenceCertain,
		})
		return true
	}
	return r.seekHeld(front)
}

// seekHeld searches the bytes held at next. When no more will come after them, or too
// many are held, it passes over those that cannot be found to be of an FPDU.
func (r *Receiver) seekHeld(front *span) bool {
	window := min(searchWindow, r.cfg.Buffer)
	b := front.bytes()[:min(front.len(), window)]
	final := (r.blocked(0) || r.floor > front.end) && len(b) == front.len()
	if sync, ok := r.search(b, final || len(b) == window); ok {
		r.resync(sync)
		return true
	}
	if !final && len(b) == window {
		r.reportLost(r.next + uint64(len(b)/2))
		r.trim(r.next)
		r.seeking.tried -= len(b) / 2
		return true
	}
	if final {
		r.reportLost(front.end)
		r.remove(0)
		r.seeking = seeking{}
	}
	return final
}

// skipHole moves over missing bytes at next that were given up.
func (r *Receiver) skipHole() bool {
	if len(r.spans) == 0 || r.floor <= r.next || !r.begun {
		return false
	}
	r.reportLost(min(r.floor, r.spans[0].start))
	r.seeking = seeking{}
	return true
}

// search searches what is held at next, whenever that has grown by a quarter, so that
// the work stays linear, and before bytes are passed over.
func (r *Receiver) search(b []byte, final bool) (Sync, bool) {
	k := &r.seeking
	if !final && len(b) < k.tried+k.tried/4+1 {
		return Sync{}, false
	}
	s := search{
		markers: r.cfg.Markers, crc: r.cfg.CRC, phase: -1, plausible: r.cfg.Plausible,
		tried: int(max(k.ended, r.next) - r.next), sums: &r.sums, at: r.next,
	}
	k.tried, k.ended = len(b), r.next+uint64(len(b))
	switch {
	case r.known && r.cfg.Markers && !r.cfg.CRC:
		return Sync{}, false // the markers do it
	case r.known:
		s.phase = layout.NextMarker(r.place(r.next))
	case r.cfg.Guess:
		sync, ok := Resync(b, r.cfg.Plausible)
		return sync, ok && (final || sync.Markers || sync.unmarked())
	}
	return s.find(b)
}

// resync begins again with what a search found.
func (r *Receiver) resync(sync Sync) {
	if !r.known {
		r.cfg.Markers, r.cfg.CRC, r.known = sync.Markers, sync.CRC, true
		// Never 0, which stands for the beginning of Full Operation.
		r.shift = layout.MarkerInterval + -(r.next+uint64(sync.Phase))%layout.MarkerInterval
		for i := range r.spans { // none is placed yet
			r.note(i, r.spans[i].start, r.spans[i].end)
		}
	}
	sync.Offset += r.next
	r.reportLost(sync.Offset)
	r.trim(sync.Offset)
	r.reportResync(sync)
}

// reportResync reports that the boundary at next is known.
func (r *Receiver) reportResync(sync Sync) {
	r.synced, r.fresh, r.how = true, true, LocatedByScan
	if sync.Phase = 0; sync.Markers {
		sync.Phase = int(-r.shift % layout.MarkerInterval)
	}
	at := r.next
	r.absorb()
	r.emit(Event{Kind: Resynced, Offset: at, End: at, Sync: sync})
}

// trim removes held bytes before an offset.
func (r *Receiver) trim(offset uint64) {
	for len(r.spans) > 0 && r.spans[0].end <= offset {
		r.remove(0)
	}
	if len(r.spans) > 0 && r.spans[0].start < offset {
		s := &r.spans[0]
		s.drop(int(offset - s.start))
		s.start = offset
		s.cands = slices.DeleteFunc(s.cands, func(c candidate) bool { return c.start < offset })
	}
}

// giveUp gives up the first missing bytes if they will not come.
func (r *Receiver) giveUp() bool {
	switch {
	case !r.synced || r.edge() >= r.floor:
		return false
	case r.waits:
		r.fresh, r.final = true, true
		return true
	case r.giveUpFPDU():
		return true
	case len(r.spans) == 0:
		return false
	}
	return r.loseBoundary()
}

// giveUpFPDU gives up the FPDU in order, which is not all there. If its ULPDU_Length is, it
// is taken to tell where the next one begins, unless something contradicts.
func (r *Receiver) giveUpFPDU() bool {
	b := r.run.bytes()
	length, size, ok := r.measure(r.next, b)
	if !ok {
		return false
	}
	if len(b) < size && r.endsOddly(b, length, size) {
		return true
	}
	end := r.next + uint64(size)
	ulpdu := r.ulpdu(r.next, b, length)
	agree := r.agree(b, end)
	if r.doubt && (!agree || !r.plausible(ulpdu) || r.cfg.CRC && r.containsFPDU(b)) {
		return r.loseBoundary()
	}
	ev := Event{
		Kind: Cut, Offset: r.next, End: end, Length: length, Located: r.how, ULPDU: ulpdu, Markers: r.marks,
	}
	if agree {
		r.stats.Lost += uint64(size)
		r.run.drop(r.run.len())
		r.trim(end)
		r.next, r.doubt, r.how = end, true, LocatedByCut
		r.absorb()
	} else {
		r.loseBoundary()
	}
	r.emit(ev)
	return true
}

// containsFPDU reports whether there is a valid FPDU within b, which is held at next.
func (r *Receiver) containsFPDU(b []byte) bool {
	s := search{
		markers: r.cfg.Markers, crc: true, phase: layout.NextMarker(r.place(r.next)), sums: &r.sums, at: r.next,
	}
	_, found := s.find(b[:min(len(b), searchWindow)])
	return found
}

// agree reports whether nothing contradicts an FPDU in order that begins with b and
// ends at an offset: no marker, and no FPDU that was found.
//
// RFC 5044, section 8: "the check SHOULD be made [...] any time a Marker points to an
// already identified FPDU."
func (r *Receiver) agree(b []byte, end uint64) bool {
	ok := r.readMarkers(r.next, b, len(b))
	for i := 0; i < len(r.spans) && r.spans[i].start < end; i++ {
		s := &r.spans[i]
		if s.placed {
			return false
		}
		if r.cfg.Markers {
			n := min(uint64(s.len()), end-s.start)
			ok = r.addMarkers(r.next, s.start, s.bytes()[:n]) && ok
		}
	}
	return ok
}

// enforceBound keeps to the bound on what is held: an analyzer gives up what is missing, a
// receiver forgets what is farthest away, which its peer will send again. [R07]
func (r *Receiver) enforceBound() bool {
	over := r.held() - r.cfg.Buffer
	switch {
	case over <= 0:
		return false
	case !r.cfg.Resync:
		return r.forget(over)
	}
	return r.raise() || r.giveUpFPDU() || r.forget(over)
}

// raise tells that the first missing bytes will not come, and reports whether any are.
func (r *Receiver) raise() bool {
	_, to, ok := r.Missing()
	r.SkipTo(to)
	return ok
}

// forget drops n bytes from those that are held, the farthest first.
func (r *Receiver) forget(n int) bool {
	end := r.edge()
	i := len(r.spans) - 1
	for i >= 0 && r.spans[i].placed {
		i--
	}
	if i < 0 {
		n = min(n, r.run.len())
		r.run.cut(n)
		r.noted[1] = min(r.noted[1], r.edge())
		r.kept = slices.DeleteFunc(r.kept, func(c candidate) bool { return c.start >= r.noted[1] })
	} else {
		s := &r.spans[i]
		n, end = min(n, s.len()), s.end
		s.cut(n)
		s.end -= uint64(n)
		s.cands = slices.DeleteFunc(s.cands, func(c candidate) bool { return c.start >= s.end })
		if s.len() == 0 {
			r.remove(i)
		}
	}
	r.stats.Dropped += uint64(n)
	r.emit(Event{Kind: Dropped, Offset: end - uint64(n), End: end})
	return true
}

// plausible asks whether a ULPDU, or the beginning of one, may be one.
func (r *Receiver) plausible(ulpdu []byte) bool {
	return r.cfg.Plausible == nil || r.cfg.Plausible(ulpdu[:min(len(ulpdu), plausibleLen)])
}
