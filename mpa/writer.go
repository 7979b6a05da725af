package mpa

import (
	"encoding/binary"
	"fmt"
)

// An FPDU is one ULPDU with its frame: RFC 5044, Section 4.1, markers not shown.
// [F01]
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         ULPDU_Length          |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	~                            ULPDU                              ~
//	|                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                               |       PAD (0-3 octets)        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              CRC                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const lengthLen = 2 // ULPDU_Length

// zeros is what PAD, and the CRC field when CRC is off, is taken from. [F03] [F05]
const zeros = "\x00\x00\x00\x00"

// Writer frames one direction of a connection: it makes FPDUs of ULPDUs. It
// writes to slices only, does not allocate, and is not safe for concurrent use.
//
// A ULPDU is framed by one Append, or, with markers off, by one Begin, any number
// of Payload and one End. Its length is the caller's business: see [CheckULPDU].
// A Writer panics where a caller breaks these rules, as going on would put a
// stream on the wire that no receiver can follow.
type Writer struct {
	markers bool
	crc     bool

	offset uint64 // octets of Full Operation written

	// between Begin and End
	sum  uint32
	size int // ULPDU_Length announced
	left int // octets of it still to come; see begun
	open bool
}

// NewWriter returns a Writer at the beginning of Full Operation. Markers are
// inserted if the peer declared M=1 [F11], and CRCs generated if either side
// declared C=1 [F14].
func NewWriter(markers, crc bool) Writer { return Writer{markers: markers, crc: crc} }

// Offset returns the octets of Full Operation written so far, markers included.
func (w *Writer) Offset() uint64 { return w.offset }

// Size returns the octets that the next FPDU takes on the stream around a ULPDU
// of n octets, its markers at the present offset included.
func (w *Writer) Size(n int) int { return fpduSize(w.offset, n, w.markers) }

// Room returns the largest ULPDU whose FPDU takes at most the given octets at the
// present offset, in octets, and 0 if there is none. It is exact where [MULPDU]
// assumes the worst: what it gives for a partly filled TCP segment may serve as a
// MULPDU, if it is not under [MinMULPDU]. [S06]
func (w *Writer) Room(octets int) int {
	content := octets &^ 3
	if w.markers && octets > 0 {
		room, here := toMarker(w.offset)
		if here {
			content -= markerLen
		}
		if over := content - room; over > 0 {
			content -= markerLen * ((over + markerInterval - 1) / markerInterval)
		}
	}
	return min(max(content-lengthLen-crcLen, 0), MaxMULPDU)
}

// CheckULPDU reports whether a sender may post a ULPDU of n octets.
//
// RFC 5044, Section 3: "The sending DDP MUST NOT post a ULPDU larger than 64768
// octets to MPA." [S02]
func CheckULPDU(n int) error {
	if n <= MaxMULPDU {
		return nil
	}
	return fmt.Errorf("mpa: ULPDU of %d octets: at most %d can be sent in one FPDU", n, MaxMULPDU)
}

// Append appends one whole FPDU around the ULPDU that the pieces make up, and
// returns the extended slice. The pieces are copied, and markers inserted where
// they fall. [F02]
func (w *Writer) Append(dst []byte, ulpdu ...[]byte) []byte {
	n := 0
	for _, p := range ulpdu {
		n += len(p)
	}
	w.check(n)
	start := len(dst)
	if w.markers {
		dst = w.appendMarked(dst, n, ulpdu)
	} else {
		dst = appendPlain(dst, n, ulpdu)
	}
	// RFC 5044, Section 4.4: the CRC is calculated from the first octet of the
	// FPDU, a marker in front included, "to the last octet of the PAD (if
	// present), inclusive. If there is a Marker immediately following the PAD,
	// the Marker is included". All of that is what was just appended. [F04]
	if w.crc {
		dst = AppendCRC(dst, CRC32C(0, dst[start:]))
	} else {
		dst = append(dst, zeros[:crcLen]...)
	}
	w.offset += uint64(len(dst) - start)
	return dst
}

// appendPlain appends all of an FPDU but its CRC, without markers.
func appendPlain(dst []byte, n int, ulpdu [][]byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	for _, p := range ulpdu {
		dst = append(dst, p...)
	}
	// Section 4.1: "The pad data MUST be set to zero by the sender". [F03]
	return append(dst, zeros[:padLen(n)]...)
}

// appendMarked appends all of an FPDU but its CRC, with the marker in front of the
// CRC, if one falls there.
func (w *Writer) appendMarked(dst []byte, n int, ulpdu [][]byte) []byte {
	m := marking{start: len(dst), offset: w.offset}
	if leadLen(w.offset, true) > 0 {
		dst = appendMarker(dst, 0) // [F09]
	}
	m.header = w.offset + uint64(len(dst)-m.start)
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	for _, p := range ulpdu {
		dst = m.append(dst, p)
	}
	for range padLen(n) {
		dst = append(m.room(dst), 0)
	}
	return m.room(dst)
}

// marking inserts the markers of one FPDU.
type marking struct {
	start  int    // where the FPDU begins in dst
	offset uint64 // where it begins in the stream
	header uint64 // where its ULPDU_Length is in the stream
}

// append appends content, with a marker wherever one falls in front of an octet.
func (m *marking) append(dst, p []byte) []byte {
	for len(p) > 0 {
		dst = m.room(dst)
		run, _ := toMarker(m.at(dst))
		run = min(run, len(p))
		dst = append(dst, p[:run]...)
		p = p[run:]
	}
	return dst
}

// room appends a marker if one falls here, so that there is room for content.
//
// RFC 5044, Section 4.3: "If an FPDU is large enough to contain multiple Markers,
// they MUST all point to the same point in the TCP stream: the first octet of the
// ULPDU Length field for the FPDU." [F08]
func (m *marking) room(dst []byte) []byte {
	at := m.at(dst)
	if at%markerInterval != 0 {
		return dst
	}
	return appendMarker(dst, at-m.header)
}

func (m *marking) at(dst []byte) uint64 { return m.offset + uint64(len(dst)-m.start) }

func (w *Writer) check(n int) {
	if w.open {
		panic("mpa: Writer used between Begin and End")
	}
	if n > MaxULPDULength {
		panic(fmt.Sprintf("mpa: ULPDU of %d octets does not fit ULPDU_Length", n))
	}
}
