package decode

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
)

// A row is TCP segments one after the other, each of which holds whole FPDUs by their headers. It
// shows FPDUs without CRCs and markers of which the startup is not known, whatever their pads.
type row struct {
	from     uint64
	bytes    []byte
	segments int
	fpdus    int
}

// Bounds of a row that is believed.
const (
	rowSegments = 4
	rowFPDUs    = 4
)

// inRow takes the next bytes, and begins Full Operation if they complete a row.
func (h *half) inRow(d *capture.Data) bool {
	r := &h.row
	n := wholeFPDUs(d.Bytes)
	if n == 0 || d.Offset != d.Segment.Offset || len(d.Bytes) != d.Segment.Length {
		*r = row{}
		return false
	}
	if r.from+uint64(len(r.bytes)) != d.Offset || len(r.bytes) > maxGuess {
		*r = row{from: d.Offset}
	}
	r.bytes = append(r.bytes, d.Bytes...)
	r.segments, r.fpdus = r.segments+1, r.fpdus+n
	if r.segments < rowSegments || r.fpdus < rowFPDUs || len(r.bytes) < markersShow {
		return false
	}
	sync := recovery.Sync{
		Offset: r.from, FPDUs: r.fpdus, Bytes: uint64(len(r.bytes)), Confidence: recovery.ConfidenceFair,
	}
	h.anchor = anchor{at: r.from, bytes: r.bytes}
	*r = row{}
	h.operateAt(&sync, false, true)
	return true
}

// wholeFPDUs returns how many FPDUs without CRC bytes are, if they are nothing else by the headers,
// and 0 otherwise.
func wholeFPDUs(b []byte) (n int) {
	for len(b) > 0 {
		end := endByHeaders(b)
		if end == 0 || layout.CRCValid(b[:end]) {
			return 0 // with CRCs there are better ways to find them
		}
		b, n = b[end:], n+1
	}
	return n
}

// endByHeaders returns where an FPDU at the start of b ends, if all of b is whole FPDUs, and 0 if
// it is not. What its pad must be is tried first.
func endByHeaders(b []byte) int {
	due := mayBegin(b)
	if due == 0 {
		return 0
	}
	least := layout.LengthLen + int(binary.BigEndian.Uint16(b)) + layout.CRCLen
	for _, end := range []int{due, least, least + 1, least + 2, least + 3} {
		if end == len(b) || end < len(b) && mayBegin(b[end:]) > 0 {
			return end
		}
	}
	return 0
}
