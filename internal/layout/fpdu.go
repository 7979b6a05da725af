package layout

import "encoding/binary"

// Measure returns the ULPDU_Length of the FPDU that begins at a stream offset and at the
// start of b, and the bytes that the FPDU takes on the stream. ok is false if
// ULPDU_Length is not in b.
func Measure(offset uint64, b []byte, markers bool) (length, size int, ok bool) {
	lead := LeadLen(offset, markers)
	if len(b) < lead+LengthLen {
		return 0, 0, false
	}
	length = int(binary.BigEndian.Uint16(b[lead:]))
	return length, Size(offset, length, markers), true
}

// AppendContent appends n bytes of content to dst, or as many as there are, and leaves
// out the markers. The content is at the start of b, at a stream offset. dst may be the
// front of b: markers are then closed up in place.
func AppendContent(dst []byte, offset uint64, b []byte, n int) []byte {
	for n > 0 {
		run, here := ToMarker(offset)
		skip := 0
		if here {
			skip = MarkerLen
		}
		if len(b) <= skip {
			break
		}
		run = min(run, n, len(b)-skip)
		dst = append(dst, b[skip:skip+run]...)
		b, offset, n = b[skip+run:], offset+uint64(skip+run), n-run
	}
	return dst
}
