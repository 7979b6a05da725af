package mpa

import "encoding/binary"

// A Marker is four octets: RFC 5044, Section 4.2. [F06]
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           RESERVED            |            FPDUPTR            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// FPDUPTR is the distance in octets from the FPDU's ULPDU_Length field to the
// marker, or zero for a marker that stands between two FPDUs and so belongs to
// the second one.
const (
	markerLen      = 4
	markerFPDUPTR  = 2   // offset of FPDUPTR in a marker
	markerInterval = 512 // octets from one marker's first octet to the next one's
	markerRun      = markerInterval - markerLen
)

// toMarker returns how many octets of content fit at a stream offset before the
// next marker, and whether a marker stands right at that offset.
//
// RFC 5044, Section 4.3: "MPA Markers MUST be inserted immediately preceding the
// first FPDU of Full Operation Phase, and at every 512th octet of the TCP octet
// stream thereafter." [F07]
func toMarker(offset uint64) (room int, here bool) {
	if phase := int(offset % markerInterval); phase != 0 {
		return markerInterval - phase, false
	}
	return markerRun, true
}

// markersIn returns the number of markers within an FPDU that begins at a stream
// offset and has the given content. A marker right behind its CRC is not its own:
// it "is considered to be contained in the following FPDU". [F09]
func markersIn(offset uint64, content int) int {
	room, here := toMarker(offset)
	n := 0
	if here {
		n = 1
	}
	if content > room {
		n += (content - room + markerRun - 1) / markerRun
	}
	return n
}

// fpduSize returns the octets that an FPDU around n octets takes on the stream.
func fpduSize(offset uint64, n int, markers bool) int {
	size := contentLen(n)
	if markers {
		size += markerLen * markersIn(offset, size)
	}
	return size
}

// leadLen returns the length of the marker in front of an FPDU: 4 or 0.
func leadLen(offset uint64, markers bool) int {
	if markers && offset%markerInterval == 0 {
		return markerLen
	}
	return 0
}

// appendMarker appends a marker at a distance from the ULPDU_Length field.
//
// RFC 5044, Section 4.2: "The Reserved field MUST be set to zero on transmit", and
// of FPDUPTR: "The least significant two bits MUST always be set to zero at the
// transmitter": they are, as everything in front of a marker comes in fours.
// [F06] [F08]
func appendMarker(dst []byte, distance uint64) []byte {
	return binary.BigEndian.AppendUint16(append(dst, 0, 0), uint16(distance))
}

// fpduPTR returns a received marker's FPDUPTR.
//
// RFC 5044, Section 4.2: "the receivers MUST always treat these [two least
// significant bits] as zero for calculations." RESERVED is "ignored on receive
// (except for CRC calculation)". [F06] [F10]
func fpduPTR(marker []byte) uint16 {
	return binary.BigEndian.Uint16(marker[markerFPDUPTR:]) &^ 3
}
