package decode

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa/layout"
	"github.com/goiwarp/iwarp/rdmap"
)

// Trailer returns the PAD and the CRC field of an FPDU, without the markers in them. Both are nil if not all of its octets were captured.
func (f *FPDU) Trailer() (pad, crc []byte) {
	n := layout.PadLen(f.Length)
	if f.Octets == nil {
		return nil, nil
	}
	b := f.Octets
	if k := len(f.Markers); k > 0 && f.Markers[k-1].Offset+layout.MarkerLen > f.End-layout.CRCLen-uint64(n) {
		b = withoutMarkers(f)
	}
	end := len(b) - layout.CRCLen
	return b[end-n : end], b[end:]
}

// pad looks at the pad of an FPDU.
//
// RFC 5044, section 4: "The pad data MUST be set to zero by the sender and ignored by the
// receiver (except for CRC checking)." [F03]
func (h *half) pad(f *FPDU) {
	pad, _ := f.Trailer()
	for _, b := range pad {
		if b == 0 {
			continue
		}
		k, advice := findPad, "the receiver ignores it; what is in it may be left from other data"
		if f.Op == rdmap.OpReadResponse && f.HasSegment {
			k.severity = Warning
			advice += ": Linux's siw leaves up to two octets of the kernel's memory there"
		}
		h.at1(k, f, fmt.Sprintf("FPDU %d: the pad is %x, and not zero", f.Number, pad), advice)
		return
	}
}

// misaligned looks at an FPDU whose CRC is wrong: its sender may have padded it to another
// size.
func (h *half) misaligned(f *FPDU) {
	if h.full.guessed || h.c.pub.Markers[h.dir] || f.Octets == nil {
		return
	}
	due := layout.PadLen(f.Length)
	for n := range due {
		if b := f.Octets[:layout.LengthLen+f.Length+n+layout.CRCLen]; layout.CRCValid(b) {
			h.at1(findPad, f, fmt.Sprintf("FPDU %d: its CRC is right with a pad of %s, where %d are due", f.Number, wording.Octets(n), due),
				"the sender must pad the FPDU to a multiple of four octets")
			h.full.restart = &restart{f.Offset + uint64(len(b)), f.Last.Number, bytes.Clone(f.Octets[len(b):])}
			return
		}
	}
}

// A restart is where the next FPDU begins after one that was padded wrongly, and the
// octets there as far as they were taken for a part of that.
type restart struct {
	at     uint64
	packet uint64 // in which the FPDU was complete
	rest   []byte
}

// realign goes on where FPDUs begin after one that was padded wrongly. The last octets
// that came are b.
func (h *half) realign(at uint64, b []byte) {
	for r := h.full.restart; r != nil; r = h.full.restart {
		h.full.restart, h.full.doubt = nil, nil
		end := r.at + uint64(len(r.rest))
		if end < at {
			return // what is in between is gone: they are searched for
		}
		h.settle(r.at, r.packet)
		h.full.base, h.full.rec, h.full.ahead = r.at, h.newReceiver(), nil
		h.full.rec.Segment(0, append(r.rest, b[end-at:]...))
		h.drain()
	}
}

// firstCRC looks at the CRC field of the first FPDU where CRC is off.
func (h *half) firstCRC(f *FPDU) {
	if !h.full.empty || f.CRC != CRCOff || f.Err != nil || f.Octets == nil {
		return
	}
	b := f.Octets
	switch {
	case [layout.CRCLen]byte(b[len(b)-layout.CRCLen:]) == [layout.CRCLen]byte{}:
		h.at1(findCRCField, f, "CRC is off, and the field is zero", "it may hold anything; Linux's siw sends zeros")
	case layout.CRCValid(b):
		h.at1(findCRCField, f, "CRC is off, and the field holds the right CRC", "the sender generates CRCs though neither end asked for them")
	}
}
