package mpa

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/layout"
)

// A Content is a part of an FPDU as it stands on the stream. CopyTo copies its bytes without the markers.
type Content = layout.Content

// FPDU is one frame found on the stream.
type FPDU struct {
	// ULPDU is what goes to DDP: no length, marker, pad or CRC is in it. It
	// aliases the bytes given to [Reader.Next]. It is nil if the FPDU is from
	// [Reader.NextContent].
	ULPDU []byte
	// Content is the same bytes. If the FPDU is from [Reader.NextContent], markers may
	// stand between them.
	Content Content
	// Offset is the stream offset of the FPDU's first byte since Full Operation
	// began; with a marker in front, of that marker.
	Offset uint64
	// Size is how many bytes the FPDU takes on the stream, with its markers.
	Size int
}

// Reader finds the FPDUs of one direction of a connection in the order of the
// stream. It keeps no bytes, does not allocate unless something is wrong, and is
// not safe for concurrent use.
//
// RFC 5044, section 6: "In an ordered TCP stream, the ULPDU Length field in the
// current FPDU when FPDU has a valid CRC, can be used to identify the beginning of
// the next FPDU." How TCP segments fall does not matter.
type Reader struct {
	markers bool
	crc     bool

	offset uint64 // stream offset of the next FPDU
	need   int    // see Need; 0: the least
	err    *Error // sticky
}

// NewReader returns a Reader at the beginning of Full Operation. Markers are
// expected if we declared M=1, and CRCs checked if either side declared C=1 (RFC 5044, section 4).
func NewReader(markers, crc bool) Reader {
	return Reader{markers: markers, crc: crc}
}

// Next looks for a whole FPDU at the start of b, which begins at the first byte not yet
// consumed, and returns it with the number of bytes that it takes. If n is 0 without an
// error, b must hold [Reader.Need] bytes before there can be an FPDU: b is unchanged
// then, and the caller gives it again with more bytes at its end.
//
// With markers, the ULPDU is compacted in place: b is scratch space of the
// receiver. An error is always an [*Error], with code 2 or 3, and sticky.
func (r *Reader) Next(b []byte) (f FPDU, n int, err error) {
	n, err = r.NextContent(b, &f)
	if n > 0 {
		// RFC 5044, section 4.3: "MPA Receivers MUST pass the ULPDU data and the ULPDU
		// Length to DDP and not the Markers, headers, and CRC." [F12]
		f.ULPDU = f.Content.Squeeze()
		f.Content = layout.Plain(f.ULPDU)
	}
	return f, n, err
}

// NextContent is Next for a receiver that copies the ULPDU from between the markers to its
// place, which spares a copy: the FPDU has a Content and no ULPDU, and b is unchanged. f is
// set to the FPDU if n is not 0.
//
// RFC 5044, section 6: "An MPA receiver MUST first verify the FPDU before passing
// the ULPDU to DDP." The CRC is verified first and the markers then, as section 8
// has code 3 only "In the event that the CRC is valid": damage on the way is
// reported as code 2 whatever it hit, and code 3 means that the sender placed a
// marker wrongly (or that CRC is off). Nothing is judged before the FPDU is whole.
func (r *Reader) NextContent(b []byte, f *FPDU) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.markers {
		return r.nextMarked(b, f)
	}
	return r.nextPlain(b, f)
}

func (r *Reader) nextMarked(b []byte, f *FPDU) (n int, err error) {
	length, size, ok := layout.Measure(r.offset, b, true)
	if !ok || !r.whole(b, size) {
		return 0, nil
	}
	if r.err = (Framing{Markers: true, CRC: r.crc}).Verify(r.offset, b, size); r.err != nil {
		return 0, r.err
	}
	start := layout.LeadLen(r.offset, true) + layout.LengthLen
	f.ULPDU, f.Offset, f.Size = nil, r.offset, size
	f.Content = layout.ContentAt(b[start:], length, r.offset+uint64(start), true)
	r.advance(size)
	return size, nil
}

// nextPlain is for a stream without markers, and does less for each FPDU: they are many where they are small.
func (r *Reader) nextPlain(b []byte, f *FPDU) (n int, err error) {
	if len(b) < layout.LengthLen {
		return 0, nil
	}
	length := int(binary.BigEndian.Uint16(b))
	size := layout.ContentLen(length)
	if !r.whole(b, size) {
		return 0, nil
	}
	if r.crc && !layout.CRCValid(b[:size]) {
		r.err = Framing{CRC: true}.crcError(r.offset, b, size)
		return 0, r.err
	}
	f.ULPDU, f.Offset, f.Size = nil, r.offset, size
	f.Content = layout.Plain(b[layout.LengthLen : layout.LengthLen+length])
	r.advance(size)
	return size, nil
}

// whole reports whether b has all of an FPDU, or else takes note of what that needs.
func (r *Reader) whole(b []byte, size int) bool {
	if len(b) >= size {
		return true
	}
	r.need = size
	return false
}

// Need returns, after Next asked for more, how many bytes b must hold in all
// before Next can find an FPDU: the whole of it where its ULPDU_Length is known,
// and the least that any FPDU takes where it is not. It is at most [layout.MaxFPDU].
func (r *Reader) Need() int {
	if r.need > 0 {
		return r.need
	}
	return layout.Size(r.offset, 0, r.markers)
}

// Offset returns the stream offset of the first byte not yet consumed.
func (r *Reader) Offset() uint64 { return r.offset }

// Peek returns the ULPDU_Length of the FPDU that begins at b, 0 to 65535, once it
// is there. Nothing is verified yet. ok is false if b is too short.
func (r *Reader) Peek(b []byte) (length int, ok bool) {
	length, _, ok = layout.Measure(r.offset, b, r.markers)
	return length, ok
}

// Skip moves past an FPDU around a ULPDU of the given length without looking at
// it, and returns its size. It is for a receiver that reads a large payload
// straight into its place, and so takes ULPDU_Length, ULPDU, PAD and CRC from the
// stream itself. Where that is not possible it does nothing and reports false: with CRC,
// an FPDU must be verified first, and with markers there are markers in the payload.
func (r *Reader) Skip(length int) (size int, ok bool) {
	if r.markers || r.crc || r.err != nil || length < 0 || length > layout.MaxULPDULength {
		return 0, false
	}
	size = layout.ContentLen(length)
	r.advance(size)
	return size, true
}

// advance moves on to the next FPDU.
func (r *Reader) advance(size int) {
	r.offset += uint64(size)
	r.need = 0
}
