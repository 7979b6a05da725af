package mpa

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// verify checks one whole FPDU at the start of b, whose size and ULPDU_Length are
// given. b is not changed.
func (r *Reader) verify(b []byte, size int) *Error {
	if r.crc {
		if err := r.verifyCRC(b, size); err != nil {
			return err
		}
	}
	if r.markers {
		return r.verifyMarkers(b, size)
	}
	return nil
}

// verifyCRC checks the CRC field.
//
// RFC 5044, Section 4.4: "Verify that the calculated CRC-32c value is the same as
// the received CRC-32c value found in the FPDU CRC field. If not, the receiver
// MUST treat the FPDU as an invalid FPDU." Markers and PAD are part of what is
// covered, whatever they hold. [F04] [R01]
func (r *Reader) verifyCRC(b []byte, size int) *Error {
	at := size - crcLen
	want := CRC32C(0, b[:at])
	got := binary.LittleEndian.Uint32(b[at:])
	if got == want {
		return nil
	}
	return &Error{
		Code:   CodeCRC,
		Offset: r.offset + uint64(at),
		Field:  "CRC",
		Reason: fmt.Sprintf("got 0x%08x want 0x%08x", wireCRC(got), wireCRC(want)),
		Hint:   r.diagnoseCRC(b, size, got, want),
	}
}

// diagnoseCRC finds out what the sender may have done otherwise.
func (r *Reader) diagnoseCRC(b []byte, size int, got, want uint32) string {
	lead := leadLen(r.offset, r.markers)
	switch {
	case got == bits.ReverseBytes32(want):
		return "it would be right in the other octet order: the peer sends the CRC most significant octet first"
	case r.offset == 0 && !r.markers && len(b) >= markerLen && string(b[:markerLen]) == zeros:
		return "the stream begins with a marker: the peer inserts markers though M=0 was declared"
	case r.offset == 0 && r.markers && unmarked(b):
		return "the FPDU is right without markers: the peer inserts none though M=1 was declared"
	case got == CRC32C(0, b[lead:size-crcLen]):
		return "it would be right without the marker in front of the FPDU, which belongs to it"
	case got == 0:
		return "the field is zero: the peer may have CRC off; it must send CRCs if either side declared C=1"
	case got == ^want:
		return "it would be right complemented: the peer leaves out the final complement of the CRC"
	}
	return "the FPDU was damaged on the way, or the streams are out of step since an earlier FPDU"
}

// unmarked reports whether b begins with a valid FPDU if there are no markers.
func unmarked(b []byte) bool {
	if len(b) < lengthLen {
		return false
	}
	size := contentLen(int(binary.BigEndian.Uint16(b)))
	if len(b) < size {
		return false
	}
	return binary.LittleEndian.Uint32(b[size-crcLen:]) == CRC32C(0, b[:size-crcLen])
}

// verifyMarkers checks every marker in an FPDU.
//
// RFC 5044, Section 8: "If the FPDU start determined from previous ULPDU Length
// fields does not match with the MPA Marker position, MPA SHOULD deliver an error
// to DDP. [...] It is OPTIONAL for a receiver to check each Marker". [F08] [F09]
func (r *Reader) verifyMarkers(b []byte, size int) *Error {
	header := leadLen(r.offset, true)
	for at := markerAt(r.offset); at < size; at += markerInterval {
		want := uint16(0)
		if at > header {
			// The distance can pass 65535 only with an ULPDU over 64768.
			want = uint16(at - header)
		}
		if got := fpduPTR(b[at:]); got != want {
			return r.markerError(size, at, got, want)
		}
	}
	return nil
}

func (r *Reader) markerError(size, at int, got, want uint16) *Error {
	first := markerAt(r.offset)
	return &Error{
		Code:   CodeMarker,
		Offset: r.offset + uint64(at),
		Field:  "marker",
		Reason: fmt.Sprintf("marker %d of %d in the FPDU at %d: got FPDUPTR 0x%04x want 0x%04x",
			(at-first)/markerInterval+1, (size-first-1)/markerInterval+1, r.offset, got, want),
		Hint: diagnoseMarker(r.offset, at, got, want),
	}
}

func diagnoseMarker(offset uint64, at int, got, want uint16) string {
	switch {
	case offset == 0 && at == 0:
		return "the stream does not begin with a marker: the peer inserts none though M=1 was declared"
	case got == want+markerLen:
		return "the peer counts from the marker in front of the FPDU; it counts from ULPDU_Length"
	case got == (want-lengthLen)&^3:
		return "the peer counts from the first octet of the ULPDU; it counts from ULPDU_Length"
	}
	return "the two ends disagree on where the FPDU began, or the peer's markers are misplaced"
}

// markerAt returns the distance from a stream offset to the first marker at or
// behind it.
func markerAt(offset uint64) int {
	return int(-offset % markerInterval)
}
