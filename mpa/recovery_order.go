package mpa

import (
	"encoding/binary"
	"fmt"
)

// place returns an offset as counted from a marker, which is what the functions for
// markers want.
func (r *Recovery) place(at uint64) uint64 { return at + r.shift }

// measure returns the ULPDU_Length of an FPDU that begins at a stream offset, where b
// is, and the octets that it takes. ok is false if ULPDU_Length is not there yet.
func (r *Recovery) measure(at uint64, b []byte) (length, size int, ok bool) {
	lead := leadLen(r.place(at), r.cfg.Markers)
	if len(b) < lead+lengthLen {
		return 0, 0, false
	}
	length = int(binary.BigEndian.Uint16(b[lead:]))
	return length, fpduSize(r.place(at), length, r.cfg.Markers), true
}

// inOrder looks for an FPDU where the next one in order begins.
//
// RFC 5044, Section 6: "In an ordered TCP stream, the ULPDU Length field in the
// current FPDU when FPDU has a valid CRC, can be used to identify the beginning of
// the next FPDU." [R02] [R04]
func (r *Recovery) inOrder() bool {
	if !r.fresh {
		return false
	}
	b := r.front()
	length, size, ok := r.measure(r.next, b)
	if !ok || len(b) < size {
		return r.partial(size)
	}
	ev := Recovered{Offset: r.next, End: r.next + uint64(size), Length: length, Located: r.how}
	marksValid := r.readMarkers(r.next, b[:size], size)
	ev.CRCValid = r.cfg.CRC && crcValid(b[:size])
	ev.Markers = r.marks
	if r.cfg.CRC && !ev.CRCValid || !marksValid {
		return r.invalid(ev, b)
	}
	ev.ULPDU = r.ulpdu(r.next, b, length)
	if r.doubt && !ev.CRCValid && !r.plausible(ev.ULPDU) {
		return r.lose(0)
	}
	ev.Event = EventPlaced
	r.consume(size)
	r.emit(ev)
	return true
}

// front returns the octets in order that are in one piece: those of the segment
// itself, or those held, with as much of the segment as the first FPDU needs.
func (r *Recovery) front() []byte {
	if r.run.len() == 0 {
		return r.in
	}
	lead := leadLen(r.place(r.next), r.cfg.Markers)
	r.fill(lead + lengthLen)
	if _, size, ok := r.measure(r.next, r.run.bytes()); ok {
		r.fill(size)
	}
	return r.run.bytes()
}

// fill moves octets of the segment to those held, until these are n.
func (r *Recovery) fill(n int) {
	n = min(max(n-r.run.len(), 0), len(r.in))
	r.run.append(r.in[:n])
	r.in = r.in[n:]
}

// consume moves on behind an FPDU of the given size, and behind what was found out of
// order right after it.
func (r *Recovery) consume(size int) {
	if r.run.len() > 0 {
		r.run.drop(size)
	} else {
		r.in = r.in[size:]
	}
	r.next += uint64(size)
	r.doubt, r.how = false, LocatedInOrder
	r.absorb()
}

// absorb closes a gap: what is known right behind what is in order becomes part of it.
func (r *Recovery) absorb() {
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

// partial keeps the octets of an FPDU that is not whole yet. size is 0 if it is not
// known.
func (r *Recovery) partial(size int) bool {
	r.run.append(r.in)
	r.in, r.fresh = nil, false
	if r.run.len() > 0 && len(r.spans) > 0 && r.spans[0].placed && r.spans[0].start == r.edge() {
		return r.overlap(size)
	}
	r.absorb()
	return r.fresh
}

// overlap deals with an FPDU in order that ends behind the start of one that was found
// out of order.
//
// RFC 5044, Section 8: "If the FPDU start determined from previous ULPDU Length
// fields does not match with the MPA Marker position, MPA SHOULD deliver an error to
// DDP. [...] the check SHOULD be made when a gap creating an out-of-order sequence is
// closed".
func (r *Recovery) overlap(size int) bool {
	if r.doubt {
		return r.lose(0)
	}
	at := r.spans[0].start
	length, _, _ := r.measure(r.next, r.run.bytes())
	r.readMarkers(r.next, r.run.bytes(), size)
	return r.fail(Recovered{Offset: r.next, End: at, Length: length, Located: r.how, Markers: r.marks}, &Error{
		Code:   CodeMarker,
		Offset: r.next + uint64(leadLen(r.place(r.next), r.cfg.Markers)),
		Field:  "ULPDU_Length",
		Reason: fmt.Sprintf("%d octets from %d on reach into the FPDU that a marker located at %d", size, r.next, at),
		Hint:   "the FPDU was damaged on the way, or the peer's markers are misplaced",
	})
}

// invalid deals with a whole FPDU in order that is not valid: b begins with it.
func (r *Recovery) invalid(ev Recovered, b []byte) bool {
	if r.doubt {
		return r.lose(0) // its start was only guessed
	}
	// RFC 5044, Section 8: code 3 is "In the event that the CRC is valid".
	size := int(ev.End - ev.Offset)
	if r.cfg.CRC && !ev.CRCValid {
		return r.fail(ev, r.crcError(b, size))
	}
	err := r.markerError(size)
	if !ev.CRCValid || !r.cfg.Resync {
		return r.fail(ev, err)
	}
	// The CRC covers ULPDU_Length: where the next FPDU begins is known.
	ev.Event, ev.Err, ev.ULPDU = EventFailed, err, r.ulpdu(r.next, b, ev.Length)
	r.consume(size)
	r.emit(ev)
	return true
}

// fail reports an error, after which a receiver stops, and an analyser has to find
// the next FPDU. [Q16]
func (r *Recovery) fail(ev Recovered, err *Error) bool {
	ev.Event, ev.Err = EventFailed, err
	r.emit(ev)
	if r.stopped = !r.cfg.Resync; !r.stopped {
		r.lose(1)
	}
	return true
}

func (r *Recovery) crcError(b []byte, size int) *Error {
	rd := Reader{markers: r.cfg.Markers, crc: true, offset: r.place(r.next)}
	err := rd.verifyCRC(b, size)
	err.Offset -= r.shift
	return err
}

// markerError returns the error of the first wrong marker of the FPDU in order.
func (r *Recovery) markerError(size int) *Error {
	header := r.next + uint64(leadLen(r.place(r.next), true))
	for _, m := range r.marks {
		if m.Valid {
			continue
		}
		rd := Reader{offset: r.place(r.next)}
		err := rd.markerError(size, int(m.Offset-r.next), m.FPDUPTR, distance(header, m.Offset))
		if err.Offset -= r.shift; r.shift != 0 {
			err.Reason = fmt.Sprintf("got FPDUPTR 0x%04x want 0x%04x", m.FPDUPTR, distance(header, m.Offset))
		}
		return err
	}
	return nil
}

// distance returns the FPDUPTR of a marker of the FPDU whose ULPDU_Length is at header.
func distance(header, marker uint64) uint16 {
	if marker < header {
		return 0
	}
	return uint16(marker - header)
}

// crcValid checks the CRC of a whole FPDU. [F04] [R01]
func crcValid(b []byte) bool {
	at := len(b) - crcLen
	return binary.LittleEndian.Uint32(b[at:]) == CRC32C(0, b[:at])
}

// readMarkers lists the markers of an FPDU of the given size that are in b, which
// begins with the FPDU, and reports whether all of them point to its ULPDU_Length.
// [F08]
func (r *Recovery) readMarkers(at uint64, b []byte, size int) (valid bool) {
	r.marks = r.marks[:0]
	return !r.cfg.Markers || r.addMarkers(at, at, b[:min(size, len(b))])
}

// addMarkers lists the markers in b, at a stream offset in the FPDU that begins at
// start.
func (r *Recovery) addMarkers(start, at uint64, b []byte) (valid bool) {
	valid = true
	header := start + uint64(leadLen(r.place(start), true))
	for i := markerAt(r.place(at)); i+markerLen <= len(b); i += markerInterval {
		m := MarkerSeen{Offset: at + uint64(i), FPDUPTR: fpduPTR(b[i:])}
		m.Valid = m.FPDUPTR == distance(header, m.Offset)
		valid = valid && m.Valid
		r.marks = append(r.marks, m)
	}
	return valid
}

// ulpdu returns the ULPDU of the FPDU at the start of b, or as much of it as there
// is: in place, or put together in scratch space if a marker stands in it. [F12]
func (r *Recovery) ulpdu(at uint64, b []byte, length int) []byte {
	from := leadLen(r.place(at), r.cfg.Markers) + lengthLen
	room, here := toMarker(r.place(at) + uint64(from))
	if !r.cfg.Markers || length <= room && !here {
		return b[from:min(from+length, len(b)):min(from+length, len(b))]
	}
	r.scratch = appendContent(r.scratch[:0], r.place(at)+uint64(from), b[from:], length)
	return r.scratch
}

// appendContent appends up to n octets of content from b, which is at an offset, and
// leaves out the markers.
func appendContent(dst []byte, at uint64, b []byte, n int) []byte {
	for n > 0 {
		run, here := toMarker(at)
		skip := 0
		if here {
			skip = markerLen
		}
		if len(b) <= skip {
			break
		}
		run = min(run, n, len(b)-skip)
		dst = append(dst, b[skip:skip+run]...)
		b, at, n = b[skip+run:], at+uint64(skip+run), n-run
	}
	return dst
}
