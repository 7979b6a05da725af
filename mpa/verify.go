package mpa

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/goiwarp/iwarp/internal/layout"
)

// Framing is how FPDUs stand on one direction of a connection, as far as it takes to
// verify one.
type Framing struct {
	// Markers tells that there are markers, CRC that CRCs are generated.
	Markers, CRC bool
	// Shift is added to a stream offset so that markers stand at multiples of 512. It
	// is 0 where offset 0 is the beginning of Full Operation, and any other value that
	// fits where the beginning is not known.
	Shift uint64
}

// Verify checks one whole FPDU, which begins at a stream offset and is the first size bytes of
// b, and returns an error with code 2 or 3, or nil. What follows the FPDU in b only helps to
// tell what the sender did wrong. b is not changed.
//
// The CRC is verified first and the markers then, as RFC 5044, section 8, has code 3
// only "In the event that the CRC is valid".
func (fr Framing) Verify(offset uint64, b []byte, size int) *Error {
	if fr.CRC && !layout.CRCValid(b[:size]) {
		return fr.crcError(offset, b, size)
	}
	if fr.Markers {
		return fr.verifyMarkers(offset, b[:size])
	}
	return nil
}

// crcError is the error of an FPDU whose CRC field is not right.
//
// RFC 5044, section 4.4: "Verify that the calculated CRC-32c value is the same as
// the received CRC-32c value found in the FPDU CRC field. If not, the receiver
// MUST treat the FPDU as an invalid FPDU." Markers and PAD are part of what is
// covered, whatever they hold. [F04] [R01]
func (fr Framing) crcError(offset uint64, b []byte, size int) *Error {
	at := size - layout.CRCLen
	want := layout.CRC32C(0, b[:at])
	got := binary.LittleEndian.Uint32(b[at:])
	return &Error{
		Code:   CodeCRC,
		Offset: offset + uint64(at),
		Field:  "CRC",
		Reason: fmt.Sprintf("got 0x%08x want 0x%08x", bits.ReverseBytes32(got), bits.ReverseBytes32(want)),
		Hint:   fr.diagnoseCRC(offset+fr.Shift, b, size, got, want),
	}
}

// diagnoseCRC finds out what the sender may have done otherwise, to an FPDU that begins
// at a distance from a marker: 0 is the beginning of Full Operation.
func (fr Framing) diagnoseCRC(place uint64, b []byte, size int, got, want uint32) string {
	lead := layout.LeadLen(place, fr.Markers)
	switch {
	case got == bits.ReverseBytes32(want):
		return "it would be right in the other byte order: the peer must send the CRC least significant byte first"
	case place == 0 && !fr.Markers && string(b[:layout.MarkerLen]) == zeros:
		return "the stream begins with a marker: the peer inserts markers though M=0 was declared"
	case fr.Markers && unmarked(b):
		return "the FPDU is right without markers: the peer inserts none though M=1 was declared"
	case got == layout.CRC32C(0, b[lead:size-layout.CRCLen]):
		return "it would be right without the marker in front of the FPDU, which belongs to it"
	case got == 0:
		return "the field is zero: the peer may have CRC off; it must send CRCs if either side declared C=1, " +
			"or both must declare C=0"
	case got == ^want:
		return "it would be right complemented: the peer leaves out the final complement of the CRC"
	}
	return "the FPDU was damaged on the way, or the streams are out of step since an earlier FPDU"
}

// unmarked reports whether b begins with a valid FPDU if there are no markers.
func unmarked(b []byte) bool {
	_, size, ok := layout.Measure(0, b, false)
	return ok && len(b) >= size && layout.CRCValid(b[:size])
}

// verifyMarkers checks every marker in an FPDU.
//
// RFC 5044, section 8: "If the FPDU start determined from previous ULPDU Length
// fields does not match with the MPA Marker position, MPA SHOULD deliver an error
// to DDP. [...] It is OPTIONAL for a receiver to check each Marker". [F08] [F09]
func (fr Framing) verifyMarkers(offset uint64, b []byte) *Error {
	place := offset + fr.Shift
	header := layout.LeadLen(place, true)
	for at := layout.NextMarker(place); at < len(b); at += layout.MarkerInterval {
		want := layout.Pointer(uint64(header), uint64(at))
		if got := layout.FPDUPTR(b[at:]); layout.Points(got) != want {
			return fr.markerError(offset, len(b), at, got, want)
		}
	}
	return nil
}

func (fr Framing) markerError(offset uint64, size, at int, got, want uint16) *Error {
	first := layout.NextMarker(offset + fr.Shift)
	return &Error{
		Code:   CodeMarker,
		Offset: offset + uint64(at),
		Field:  "marker",
		Reason: fmt.Sprintf("marker %d of %d in the FPDU at %d: got FPDUPTR 0x%04x want 0x%04x",
			(at-first)/layout.MarkerInterval+1, (size-first-1)/layout.MarkerInterval+1, offset, got, want),
		Hint: diagnoseMarker(offset+fr.Shift, at, got, want),
	}
}

func diagnoseMarker(place uint64, at int, got, want uint16) string {
	if place == 0 && at == 0 {
		return "the stream does not begin with a marker: the peer inserts none though M=1 was declared"
	}
	if from := countedFrom(layout.Points(got), want); from != "" {
		return "the peer counts from " + from + "; it must count from ULPDU_Length"
	}
	const order = "the peer writes FPDUPTR least significant byte first: it must write the most significant byte first"
	swapped := layout.Points(bits.ReverseBytes16(got))
	if from := countedFrom(swapped, want); from != "" {
		return order + ", and count from ULPDU_Length, not from " + from
	}
	if swapped == want {
		return order
	}
	return "the two ends disagree on where the FPDU began, or the peer's markers are misplaced"
}

// countedFrom names the place from which a wrong distance would be right.
func countedFrom(got, want uint16) string {
	switch got {
	case want + layout.MarkerLen:
		return "the marker in front of the FPDU"
	case layout.Points(want - layout.LengthLen):
		return "the first byte of the ULPDU"
	}
	return ""
}
