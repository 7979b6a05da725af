package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// Trailer returns the PAD and the CRC field of an FPDU, without the markers in them. Both are nil if not all of its
// bytes were captured, and over SCTP, which has neither.
func (f *FPDU) Trailer() (pad, crc []byte) {
	if f.Bytes == nil || f.padLen() < 0 {
		return nil, nil
	}
	n, b := f.padLen(), f.Bytes
	if k := len(f.Markers); k > 0 && f.Markers[k-1].Offset+layout.MarkerLen > f.End-layout.CRCLen-uint64(n) {
		b = withoutMarkers(f)
	}
	end := len(b) - layout.CRCLen
	return b[end-n : end], b[end:]
}

// padLen returns how many bytes of an FPDU, all of which are there, are its pad.
func (f *FPDU) padLen() int {
	return len(f.Bytes) - layout.MarkerLen*len(f.Markers) - layout.LengthLen - f.Length - layout.CRCLen
}

// mispadded reports whether the pad of an FPDU has another size than it must have.
func (f *FPDU) mispadded() bool {
	return f.Bytes != nil && f.Chunk == nil && f.padLen() != layout.PadLen(f.Length)
}

// pad looks at the pad of an FPDU.
//
// RFC 5044, section 4: "The pad data MUST be set to zero by the sender and ignored by the
// receiver (except for CRC checking)." [F03]
func (h *half) pad(f *FPDU) {
	if f.mispadded() {
		h.full.padded = true
		text := fmt.Sprintf("FPDU %d: a pad of %s, where %d must be: the next FPDU shows where this one ends",
			f.Number, wording.Bytes(f.padLen()), layout.PadLen(f.Length))
		h.reportAt(findPad, f, text, "the sender must pad the FPDU to a multiple of four bytes")
		return
	}
	pad, _ := f.Trailer()
	for _, b := range pad {
		if b == 0 {
			continue
		}
		const ignored = "the receiver ignores it; what is in it may be left from other data"
		k, text, advice := findPad, "the pad is not zero",
			fmt.Sprintf("FPDU %d has %x there: %s", f.Number, pad, ignored)
		k.severity = Note
		if f.Op == rdmap.OpReadResponse && f.HasSegment {
			k.severity, text = Warning, fmt.Sprintf("FPDU %d: the pad is %x, and not zero", f.Number, pad)
			advice = ignored + ": Linux's siw leaves up to two bytes of the kernel's memory there"
		}
		h.reportAt(k, f, text, advice)
		return
	}
}

// firstCRC looks at the CRC field of the first FPDU where CRC is off.
func (h *half) firstCRC(f *FPDU) {
	if !h.full.empty || f.CRC != CRCOff || f.Err != nil || f.Bytes == nil {
		return
	}
	b := f.Bytes
	switch {
	case [layout.CRCLen]byte(b[len(b)-layout.CRCLen:]) == [layout.CRCLen]byte{}:
		h.reportAt(findCRCField, f, "CRC is off, and the field is zero", "it may hold anything; Linux's siw sends zeros")
	case habitOf(b) == habitSwapped && h.full.guessed:
		h.reportAt(findCRC, f, fmt.Sprintf("FPDU %d: the CRC is right in the other byte order", f.Number),
			"the sender must send the CRC least significant byte first")
	case layout.CRCValid(b):
		h.reportAt(findCRCField, f, "CRC is off, and the field holds the right CRC",
			"the sender generates CRCs though neither end asked for them")
	}
}
