package mpa

import (
	"encoding/binary"
	"fmt"
)

// Begin begins an FPDU whose ULPDU stays where it is: it appends ULPDU_Length and
// returns the extended slice. The caller sends what Begin appended, then the
// ULPDU, then what [Writer.End] appends, in one gathered write. Markers must be
// off, as they would fall into the caller's octets.
func (w *Writer) Begin(dst []byte, ulpduLen int) []byte {
	w.check(ulpduLen)
	if w.markers {
		panic("mpa: Writer.Begin with markers on: use Append")
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(ulpduLen))
	if w.crc {
		w.sum = CRC32C(0, dst[start:])
	}
	w.size, w.left, w.open = ulpduLen, ulpduLen, true
	return dst
}

// Payload takes note of the next octets of the ULPDU, which the caller sends
// itself and must not change until they are sent.
func (w *Writer) Payload(p []byte) {
	if len(p) > w.left {
		panic(fmt.Sprintf("mpa: Writer.Payload: %d octets more than the ULPDU_Length of %d", len(p)-w.left, w.size))
	}
	w.left -= len(p)
	if w.crc {
		w.sum = CRC32C(w.sum, p)
	}
}

// End ends the FPDU: it appends PAD and CRC, 4 to 7 octets, and returns the
// extended slice. The CRC field is zero when CRC is off.
func (w *Writer) End(dst []byte) []byte {
	if !w.open || w.left > 0 {
		panic(fmt.Sprintf("mpa: Writer.End: %d octets of the ULPDU are missing", w.left))
	}
	w.open = false
	w.offset += uint64(contentLen(w.size))
	start := len(dst)
	dst = append(dst, zeros[:padLen(w.size)]...) // [F03]
	if !w.crc {
		return append(dst, zeros[:crcLen]...) // [F05]
	}
	return AppendCRC(dst, CRC32C(w.sum, dst[start:]))
}
