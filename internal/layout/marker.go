package layout

import "encoding/binary"

// A Marker is four bytes: RFC 5044, section 4.2.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           RESERVED            |            FPDUPTR            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// FPDUPTR is the distance in bytes from the FPDU's ULPDU_Length field to the
// marker, or zero for a marker that stands between two FPDUs and so belongs to
// the second one.
const (
	MarkerLen      = 4
	markerFPDUPTR  = 2   // offset of FPDUPTR in a marker
	MarkerInterval = 512 // bytes from one marker's first byte to the next one's
	markerRun      = MarkerInterval - MarkerLen
)

// ToMarker returns how many octets of content fit at a stream offset before the
// next marker, and whether a marker stands right at that offset.
//
// RFC 5044, section 4.3: "MPA Markers MUST be inserted immediately preceding the
// first FPDU of Full Operation Phase, and at every 512th octet of the TCP octet
// stream thereafter."
func ToMarker(offset uint64) (room int, here bool) {
	if phase := int(offset % MarkerInterval); phase != 0 {
		return MarkerInterval - phase, false
	}
	return markerRun, true
}

// MarkersIn returns the number of markers within an FPDU that begins at a stream
// offset and has the given content. A marker right after its CRC is not its own:
// it "is considered to be contained in the following FPDU".
func MarkersIn(offset uint64, content int) int {
	room, here := ToMarker(offset)
	n := (max(content-room, 0) + markerRun - 1) / markerRun
	if here {
		n++
	}
	return n
}

// Size returns the bytes that an FPDU around n bytes takes on the stream.
func Size(offset uint64, n int, markers bool) int {
	size := ContentLen(n)
	if markers {
		size += MarkerLen * MarkersIn(offset, size)
	}
	return size
}

// LeadLen returns the length of the marker in front of an FPDU: 4 or 0.
func LeadLen(offset uint64, markers bool) int {
	if markers && offset%MarkerInterval == 0 {
		return MarkerLen
	}
	return 0
}

// AppendMarker appends a marker at a distance from the ULPDU_Length field.
//
// RFC 5044, section 4.2: "The Reserved field MUST be set to zero on transmit", and
// of FPDUPTR: "The least significant two bits MUST always be set to zero at the
// transmitter": they are, as everything in front of a marker comes in fours.
func AppendMarker(dst []byte, distance uint64) []byte {
	return binary.BigEndian.AppendUint16(append(dst, 0, 0), uint16(distance))
}

// FPDUPTR returns a received marker's FPDUPTR with all its bits, for [Points] and to be
// shown. RESERVED is "ignored on receive (except for CRC calculation)".
func FPDUPTR(marker []byte) uint16 {
	return binary.BigEndian.Uint16(marker[markerFPDUPTR:])
}

// Points returns the distance, a multiple of four, to which a received FPDUPTR points.
//
// RFC 5044, section 4.2: "the receivers MUST always treat these [two least
// significant bits] as zero for calculations."
func Points(fpduptr uint16) uint16 {
	return fpduptr &^ 3
}

// Pointer returns the FPDUPTR that a marker at a stream offset must have in the FPDU whose
// ULPDU_Length is at header: 0 if the marker is in front of that.
//
// RFC 5044, section 4.3: "If an FPDU is large enough to contain multiple Markers,
// they MUST all point to the same point in the TCP stream: the first octet of the
// ULPDU Length field for the FPDU." The distance passes 65535 only with a ULPDU of more
// than 64768 octets.
func Pointer(header, marker uint64) uint16 {
	return uint16(max(marker, header) - header) // [F08] [F09]
}

// NextMarker returns the distance from a stream offset to the first marker at or
// after it.
func NextMarker(offset uint64) int {
	return int(-offset % MarkerInterval)
}
