package recovery

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// place returns an offset as counted from a marker, which is what the functions for
// markers want.
func (r *Receiver) place(at uint64) uint64 { return at + r.shift }

// measure returns the ULPDU_Length of an FPDU that begins at a stream offset, where b
// is, and the bytes that it takes. ok is false if ULPDU_Length is not there yet.
func (r *Receiver) measure(at uint64, b []byte) (length, size int, ok bool) {
	return layout.Measure(r.place(at), b, r.cfg.Markers)
}

// inOrder looks for an FPDU where the next one in order begins.
//
// RFC 5044, section 6: "In an ordered TCP stream, the ULPDU Length field in the
// current FPDU when FPDU has a valid CRC, can be used to identify the beginning of
// the next FPDU." [R02] [R04]
func (r *Receiver) inOrder() bool {
	if !r.fresh {
		return false
	}
	r.waits = false
	b := r.front()
	length, size, ok := r.measure(r.next, b)
	if !ok || len(b) < size {
		return ok && r.endsOddly(b, length, size) || r.partial(size)
	}
	ev := Event{Offset: r.next, End: r.next + uint64(size), Length: length, Located: r.how, Bytes: b[:size:size]}
	marksValid := r.readMarkers(r.next, b[:size], size)
	ev.CRCValid = r.cfg.CRC && layout.CRCValid(b[:size])
	ev.Markers = r.marks
	if !ev.CRCValid && r.endsOddly(b, length, size) {
		return true
	}
	r.final = false
	if r.cfg.CRC && !ev.CRCValid || !marksValid {
		return r.invalid(ev, b)
	}
	ev.ULPDU = r.ulpdu(r.next, b, length)
	if r.doubt && !ev.CRCValid && !r.plausible(ev.ULPDU) {
		return r.loseBoundary()
	}
	ev.Kind = Placed
	r.consume(size)
	r.emit(ev)
	return true
}

// front returns the bytes in order that are in one piece: those of the segment
// itself, or those held, with as much of the segment as the first FPDU needs.
func (r *Receiver) front() []byte {
	if r.run.len() == 0 {
		return r.in
	}
	lead := layout.LeadLen(r.place(r.next), r.cfg.Markers)
	r.fill(lead + layout.LengthLen)
	if _, size, ok := r.measure(r.next, r.run.bytes()); ok {
		if r.run.len() > size && r.cfg.End != nil {
			size += len(r.in) // it may be asked about what follows
		}
		r.fill(size)
	}
	return r.run.bytes()
}

// fill moves bytes of the segment to those held, until these are n.
func (r *Receiver) fill(n int) {
	n = min(max(n-r.run.len(), 0), len(r.in))
	r.run.append(r.in[:n])
	r.in = r.in[n:]
}

// consume moves on after an FPDU of the given size, and after what was found out of
// order right after it.
func (r *Receiver) consume(size int) {
	if r.run.len() > 0 {
		r.run.drop(size)
	} else {
		r.in = r.in[size:]
	}
	r.next += uint64(size)
	r.doubt, r.misled, r.how = false, false, LocatedInOrder
	r.absorb()
}

// absorb closes a gap: what is known right after what is in order becomes part of it.
func (r *Receiver) absorb() {
	for len(r.spans) > 0 && len(r.in) == 0 && r.spans[0].start == r.edge() {
		s := &r.spans[0]
		switch {
		case !s.placed:
			r.reuse()
			r.fresh = true
			continue
		case r.run.len() > 0:
			return // partial sees to it
		default:
			r.next, r.doubt, r.how = s.end, false, LocatedInOrder
		}
		r.remove(0)
	}
}

// partial keeps the bytes of an FPDU that is not whole yet. size is 0 if it is not
// known.
func (r *Receiver) partial(size int) bool {
	r.run.append(r.in)
	r.in, r.fresh = nil, false
	if r.run.len() > 0 && len(r.spans) > 0 && r.spans[0].placed && r.spans[0].start == r.edge() {
		return r.overlap(size)
	}
	r.absorb()
	return r.fresh
}

// overlap deals with an FPDU in order that ends after the start of one that was found
// out of order.
//
// RFC 5044, section 8: "If the FPDU start determined from previous ULPDU Length
// fields does not match with the MPA Marker position, MPA SHOULD deliver an error to
// DDP. [...] the check SHOULD be made when a gap creating an out-of-order sequence is
// closed".
func (r *Receiver) overlap(size int) bool {
	if r.doubt {
		return r.loseBoundary()
	}
	at := r.spans[0].start
	length, _, _ := r.measure(r.next, r.run.bytes())
	r.readMarkers(r.next, r.run.bytes(), size)
	return r.fail(Event{Offset: r.next, End: at, Length: length, Located: r.how, Markers: r.marks}, &mpa.Error{
		Code:   mpa.CodeMarker,
		Offset: r.next + uint64(layout.LeadLen(r.place(r.next), r.cfg.Markers)),
		Field:  "ULPDU_Length",
		Reason: fmt.Sprintf("%d bytes from %d on reach into the FPDU that a marker located at %d", size, r.next, at),
		Hint:   "the FPDU was damaged on the way, or the peer's markers are misplaced",
	})
}

// invalid deals with a whole FPDU in order that is not valid: b begins with it.
func (r *Receiver) invalid(ev Event, b []byte) bool {
	if r.doubt && (!r.misled || !r.plausible(r.ulpdu(r.next, b, ev.Length))) {
		return r.loseBoundary() // its start was only guessed
	}
	// RFC 5044, section 8: code 3 is "In the event that the CRC is valid".
	size := int(ev.End - ev.Offset)
	if r.cfg.CRC && !ev.CRCValid {
		return r.fail(ev, r.verify(b, size))
	}
	err := r.verify(b, size)
	if !r.cfg.Resync {
		return r.fail(ev, err)
	}
	ev.Kind, ev.Err, ev.ULPDU = Failed, err, r.ulpdu(r.next, b, ev.Length)
	if !ev.CRCValid {
		return r.mismarked(ev, size)
	}
	// The CRC covers ULPDU_Length: where the next FPDU begins is known.
	r.consume(size)
	r.emit(ev)
	return true
}

// mismarked goes on after an FPDU of which only a marker is wrong, where there are no
// CRCs. If the FPDU is plausible, its ULPDU_Length is taken to tell where the next one
// begins, unless that one contradicts.
func (r *Receiver) mismarked(ev Event, size int) bool {
	if r.cfg.Plausible == nil || !r.plausible(ev.ULPDU) {
		ev.ULPDU = nil
		return r.fail(ev, ev.Err)
	}
	if r.consume(size); r.next == ev.End {
		r.doubt, r.misled, r.how = true, true, LocatedByCut
	}
	r.emit(ev)
	return true
}

// fail reports an error, after which a receiver stops, and an analyzer has to find
// the next FPDU. [Q16]
func (r *Receiver) fail(ev Event, err *mpa.Error) bool {
	ev.Kind, ev.Err = Failed, err
	r.emit(ev)
	if r.stopped = !r.cfg.Resync; !r.stopped {
		r.loseBoundary()
	}
	return true
}

// verify returns the error of the FPDU in order, of the given size, at the start of b.
func (r *Receiver) verify(b []byte, size int) *mpa.Error {
	framing := mpa.Framing{Markers: r.cfg.Markers, CRC: r.cfg.CRC, Shift: r.shift}
	return framing.Verify(r.next, b, size)
}

// readMarkers lists the markers of an FPDU of the given size that are in b, which
// begins with the FPDU, and reports whether all of them point to its ULPDU_Length. [F08]
func (r *Receiver) readMarkers(at uint64, b []byte, size int) (valid bool) {
	r.marks = r.marks[:0]
	return !r.cfg.Markers || r.addMarkers(at, at, b[:min(size, len(b))])
}

// addMarkers lists the markers in b, at a stream offset in the FPDU that begins at
// start.
func (r *Receiver) addMarkers(start, at uint64, b []byte) (valid bool) {
	valid = true
	header := start + uint64(layout.LeadLen(r.place(start), true))
	for i := layout.NextMarker(r.place(at)); i+layout.MarkerLen <= len(b); i += layout.MarkerInterval {
		m := MarkerSeen{Offset: at + uint64(i), FPDUPTR: layout.FPDUPTR(b[i:])}
		m.Valid = layout.Points(m.FPDUPTR) == layout.Pointer(header, m.Offset)
		valid = valid && m.Valid
		r.marks = append(r.marks, m)
	}
	return valid
}

// ulpdu returns the ULPDU of the FPDU at the start of b, or as much of it as there
// is: in place, or put together in scratch space if a marker stands in it. [F12]
func (r *Receiver) ulpdu(at uint64, b []byte, length int) []byte {
	from := layout.LeadLen(r.place(at), r.cfg.Markers) + layout.LengthLen
	room, here := layout.ToMarker(r.place(at) + uint64(from))
	if !r.cfg.Markers || length <= room && !here {
		return b[from:min(from+length, len(b)):min(from+length, len(b))]
	}
	r.scratch = layout.AppendContent(r.scratch[:0], r.place(at)+uint64(from), b[from:], length)
	return r.scratch
}
