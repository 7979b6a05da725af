package mpa

import "encoding/binary"

// FPDU is one frame found on the stream.
type FPDU struct {
	// ULPDU is what goes to DDP: no length, marker, pad or CRC is in it. It
	// aliases the octets given to [Reader.Next]. [F12]
	ULPDU []byte
	// Offset is the stream offset of the FPDU's first octet since Full Operation
	// began; with a marker in front, of that marker.
	Offset uint64
	// Size is the octets that the FPDU takes on the stream, with its markers.
	Size int
}

// Reader finds the FPDUs of one direction of a connection in the order of the
// stream. It keeps no octets, does not allocate unless something is wrong, and is
// not safe for concurrent use.
//
// RFC 5044, Section 6: "In an ordered TCP stream, the ULPDU Length field in the
// current FPDU when FPDU has a valid CRC, can be used to identify the beginning of
// the next FPDU." How TCP segments fall does not matter. [R01] [R02] [R04]
type Reader struct {
	markers bool
	crc     bool

	offset uint64 // stream offset of the next FPDU
	need   int    // see Need
	err    *Error // sticky
}

// NewReader returns a Reader at the beginning of Full Operation. Markers are
// expected if we declared M=1 [F11], and CRCs checked if either side declared C=1
// [F14].
func NewReader(markers, crc bool) Reader {
	r := Reader{markers: markers, crc: crc}
	r.advance(0)
	return r
}

// Next looks at b, which begins at the first octet not yet consumed, for a whole
// FPDU, and returns it with the octets that it takes. n == 0 without an error
// means that more octets are needed, [Reader.Need] of them; b is unchanged then,
// and is to be given again with more behind it.
//
// With markers, the ULPDU is compacted in place: b is scratch space of the
// receiver. An error is always an [*Error], with code 2 or 3, and sticky.
//
// RFC 5044, Section 6: "An MPA receiver MUST first verify the FPDU before passing
// the ULPDU to DDP." The CRC is verified first and the markers then, as Section 8
// has code 3 only "In the event that the CRC is valid": damage on the way is
// reported as code 2 whatever it hit, and code 3 means that the sender placed a
// marker wrongly (or that CRC is off). Nothing is judged before the FPDU is whole.
func (r *Reader) Next(b []byte) (f FPDU, n int, err error) {
	if r.err != nil {
		return FPDU{}, 0, r.err
	}
	length, ok := r.Peek(b)
	if !ok {
		return FPDU{}, 0, nil
	}
	size := fpduSize(r.offset, length, r.markers)
	if len(b) < size {
		r.need = size
		return FPDU{}, 0, nil
	}
	if r.err = r.verify(b, size); r.err != nil {
		return FPDU{}, 0, r.err
	}
	f = FPDU{ULPDU: r.ulpdu(b, length), Offset: r.offset, Size: size}
	r.advance(size)
	return f, size, nil
}

// Need returns, after Next asked for more, how many octets b must hold in all
// before Next can find an FPDU: the whole of it where its ULPDU_Length is known,
// and the least that any FPDU takes where it is not. It is at most [MaxFPDU].
func (r *Reader) Need() int { return r.need }

// Offset returns the stream offset of the first octet not yet consumed.
func (r *Reader) Offset() uint64 { return r.offset }

// Peek returns the ULPDU_Length of the FPDU that begins at b, 0 to 65535, once it
// is there. Nothing is verified yet. ok is false if b is too short.
func (r *Reader) Peek(b []byte) (length int, ok bool) {
	lead := leadLen(r.offset, r.markers)
	if len(b) < lead+lengthLen {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(b[lead:])), true
}

// Skip moves past an FPDU around a ULPDU of the given length without looking at
// it, and returns its size. It is for a receiver that reads a large payload
// straight into its place, and so takes ULPDU_Length, ULPDU, PAD and CRC from the
// stream itself. It reports false, and does nothing, where that is not allowed:
// with CRC on an FPDU is verified first [R01], with markers on they are in the way.
func (r *Reader) Skip(length int) (size int, ok bool) {
	if r.markers || r.crc || r.err != nil || length < 0 || length > MaxULPDULength {
		return 0, false
	}
	size = contentLen(length)
	r.advance(size)
	return size, true
}

// advance moves on to the next FPDU.
func (r *Reader) advance(size int) {
	r.offset += uint64(size)
	r.need = fpduSize(r.offset, 0, r.markers)
}

// ulpdu returns the ULPDU of a verified FPDU, moved together over its markers.
//
// RFC 5044, Section 4.3: "MPA Receivers MUST pass the ULPDU data and the ULPDU
// Length to DDP and not the Markers, headers, and CRC." [F12]
func (r *Reader) ulpdu(b []byte, length int) []byte {
	start := leadLen(r.offset, r.markers) + lengthLen
	if !r.markers {
		return b[start : start+length : start+length]
	}
	from, to := start, start
	for end := start + length; to < end; {
		run, here := toMarker(r.offset + uint64(from))
		if here {
			from += markerLen
		}
		run = min(run, end-to)
		if from != to {
			copy(b[to:], b[from:from+run])
		}
		from, to = from+run, to+run
	}
	return b[start:to:to]
}
