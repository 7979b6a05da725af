package decode

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
)

// receiver returns a Receiver that asks where doubtful FPDUs end. Its offsets begin at base.
func (h *half) receiver(cfg recovery.Config, base uint64) *recovery.Receiver {
	var r *recovery.Receiver
	cfg.Resync, cfg.Plausible = true, plausible
	cfg.End = func(d recovery.Doubtful) (int, bool) {
		d.Offset += base
		if _, crc, _ := r.Mode(); crc {
			return h.endByCRC(&d)
		}
		return h.endByNext(&d)
	}
	r = recovery.New(cfg)
	return r
}

// Bounds of wrong pads, in bytes.
const (
	mostPad = 7 // in an FPDU whose CRC covers it
	extra   = 4 // after one without CRC
)

// leastFPDU is the size of the smallest FPDU with a DDP header in it, in bytes.
const leastFPDU = 20

// endByCRC tells where an FPDU ends whose CRC is wrong at the end that it must have.
func (h *half) endByCRC(d *recovery.Doubtful) (size int, ok bool) {
	if size, ok = h.endByOtherPad(d); ok {
		return size, true
	}
	switch whole := len(d.Head) >= d.Size; {
	case whole && h.sound(d):
		return d.Size, true
	case whole && (len(d.Rest) > 0 || h.full.padded):
		return d.Padded(mostPad), false // where a longer pad may end
	}
	return 0, false
}

// endByOtherPad looks for a pad of another size with which the CRC is right.
func (h *half) endByOtherPad(d *recovery.Doubtful) (size int, ok bool) {
	all, most := d.Head, d.Padded(mostPad)
	if n := min(len(d.Rest), most-len(all)); n > 0 {
		all = slices.Concat(all, d.Rest[:n])
	}
	for n := range mostPad + 1 {
		if end := d.Padded(n); end != d.Size && !h.maybeMarker(end-d.Size) && end <= len(all) &&
			layout.CRCValid(all[:end]) {
			return end, true
		}
	}
	return 0, false
}

// endByNext tells where an FPDU ends that has no CRC, if the next one does not begin where it
// must.
func (h *half) endByNext(d *recovery.Doubtful) (size int, ok bool) {
	closed := d.Final && h.full.closing
	switch n := len(d.Rest); {
	case len(d.Head) < d.Size:
		// The last FPDU is as those before it.
		return len(d.Head), h.full.closing && h.full.padded && len(d.Head) >= d.Padded(0)
	case n == 0 || mayFollow(d, d.Size):
		return 0, false
	case n < d.Lead(d.Size)+leastFPDU && !d.Final:
		return d.Size + d.Lead(d.Size) + leastFPDU, false
	case n <= extra && closed && !h.maybeMarker(n) && !slices.ContainsFunc(d.Rest, func(b byte) bool { return b != 0 }):
		return d.Size + n, true
	}
	return h.endBeforeNext(d)
}

// endBeforeNext looks for another pad after which the next FPDU begins.
func (h *half) endBeforeNext(d *recovery.Doubtful) (size int, ok bool) {
	need := 0
	for n := range layout.PadLen(d.Length) + extra + 1 {
		end := d.Padded(n)
		if end == d.Size || h.maybeMarker(end-d.Size) {
			continue
		}
		begins, after := h.beginsAt(d, end)
		if begins {
			return end, true
		}
		need = max(need, after)
	}
	return need, false
}

// maybeMarker reports whether what an FPDU has more than its length says may be a marker in it.
func (h *half) maybeMarker(more int) bool { return h.full.guessed && more == layout.MarkerLen }

// mayFollow reports whether an FPDU may begin after some bytes of another one.
func mayFollow(d *recovery.Doubtful, at int) bool {
	return mayBegin(from(d, at+d.Lead(at))) > 0
}

// beginsAt reports whether the next FPDU seems to begin after some bytes of this one: one may
// begin there, and a TCP segment does, or another FPDU follows it, with whatever pad. If it does
// not, need is how many bytes must be there to tell, or 0.
func (h *half) beginsAt(d *recovery.Doubtful, at int) (begins bool, need int) {
	if !mayFollow(d, at) {
		return false, 0
	}
	if c := h.in.at(d.Offset + uint64(at)); c != nil && c.segment.Offset == d.Offset+uint64(at) {
		return true, 0
	}
	least := at + d.Lead(at) + layout.LengthLen + int(binary.BigEndian.Uint16(from(d, at+d.Lead(at)))) + layout.CRCLen
	for end := least; end <= least+extra; end++ {
		if mayFollow(d, end) || h.segmentEnds(d.Offset+uint64(end)) {
			return true, 0
		}
	}
	return false, least + extra + leastFPDU
}

// from returns what follows some bytes of an FPDU, if not all of it then as much as a header.
func from(d *recovery.Doubtful, at int) []byte {
	if n := at - len(d.Head); n >= 0 {
		return d.Rest[min(n, len(d.Rest)):]
	}
	return slices.Concat(d.Head[at:], d.Rest[:min(len(d.Rest), leastFPDU)])
}

// segmentEnds reports whether a TCP segment ends at a stream offset.
func (h *half) segmentEnds(offset uint64) bool {
	c := h.in.at(offset - 1)
	return c != nil && c.segmentEnd() == offset
}

// A habit is what a sender puts into CRC fields in place of the CRC.
type habit uint8

const (
	habitNone       habit = iota // nothing in particular
	habitZero                    // zeros
	habitSwapped                 // the CRC most significant byte first
	habitComplement              // the CRC without its final complement
)

// habitOf returns what the CRC field of an FPDU holds, if that is not its CRC.
func habitOf(fpdu []byte) habit {
	at := len(fpdu) - layout.CRCLen
	want, got := layout.CRC32C(0, fpdu[:at]), binary.LittleEndian.Uint32(fpdu[at:])
	switch {
	case got == want:
		return habitNone
	case got == bits.ReverseBytes32(want):
		return habitSwapped
	case got == ^want:
		return habitComplement
	case got == 0:
		return habitZero
	}
	return habitNone
}

// sound reports whether an FPDU is whole for all its CRC field tells. Zeros tell little: it has to
// be one by its header, and by what follows.
func (h *half) sound(d *recovery.Doubtful) bool {
	switch habitOf(d.Head) {
	case habitSwapped, habitComplement:
		return true
	case habitZero:
		return plausible(d.ULPDU) && (mayFollow(d, d.Size) || h.segmentEnds(d.Offset+uint64(d.Size)))
	}
	return false
}
