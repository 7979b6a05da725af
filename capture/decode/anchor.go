package decode

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/internal/wording"
)

// An anchor is where FPDUs begin if the two ends go on after a startup that has failed: right
// after its frames. What came since is kept until the first FPDU shows in which mode they are.
type anchor struct {
	open  bool
	at    uint64
	bytes []byte
}

// drop begins to wait for the first FPDU at an offset, of which some bytes may have come.
func (a *anchor) drop(at uint64, b []byte) { *a = anchor{open: true, at: at, bytes: bytes.Clone(b)} }

// endOffset returns the offset of the first byte that has not come.
func (a *anchor) endOffset() uint64 { return a.at + uint64(len(a.bytes)) }

// anchored takes what has come, and reports whether it shows that FPDUs begin at the anchor.
func (h *half) anchored(d *capture.Data) bool {
	a, end := &h.anchor, d.Offset+uint64(len(d.Bytes))
	switch {
	case !a.open || end <= a.endOffset():
	case d.Offset > a.endOffset() || len(a.bytes) > layout.MaxFPDU:
		*a = anchor{}
	default:
		a.bytes = append(a.bytes, d.Bytes[a.endOffset()-d.Offset:]...)
		return h.weigh()
	}
	return false
}

// weigh reports whether the first FPDU at the anchor is whole, and begins Full Operation there.
func (h *half) weigh() bool {
	for _, s := range h.modes() {
		if h.holds(&s) {
			h.operateAt(&s, true, true)
			return true
		}
	}
	return false
}

// modes are those in which FPDUs may be: first the one in which they must be by the frames.
func (h *half) modes() []recovery.Sync {
	var list []recovery.Sync
	markers, crc := h.declared()
	for _, m := range []bool{markers, !markers} {
		list = append(list, recovery.Sync{Offset: h.anchor.at, Markers: m, CRC: true})
	}
	if !crc {
		list = append(list, recovery.Sync{Offset: h.anchor.at, Markers: markers})
	}
	return list
}

// declared returns what the two frames ask for.
//
// RFC 5044, section 7.1: an end gets markers if its own frame has M=1, and CRCs are in use if
// either frame has C=1. [F11] [F14]
func (h *half) declared() (markers, crc bool) {
	for _, f := range []*Startup{h.c.start.request, h.c.start.reply} {
		if f != nil && f.Fields != nil {
			markers = markers || f.Fields.M() && f.Dir != h.dir
			crc = crc || f.Fields.C()
		}
	}
	return markers, crc
}

// holds reports whether the first FPDU is there and right in a mode, whatever pad it has. Where
// there is no CRC, or the sender puts something else in its place, it has to be framed.
func (h *half) holds(s *recovery.Sync) bool {
	b := h.anchor.bytes
	length, size, ok := layout.Measure(0, b, s.Markers)
	if !ok {
		return false
	}
	_, crc := h.declared()
	content := layout.LengthLen + length + layout.CRCLen
	for n := range mostPad + 1 {
		end := content + n
		if s.Markers {
			end += layout.MarkerLen * layout.MarkersIn(0, end)
		}
		if end > len(b) {
			break
		}
		s.FPDUs, s.Bytes, s.Confidence = 1, uint64(end), recovery.ConfidenceGood
		if s.CRC && layout.CRCValid(b[:end]) {
			return true
		}
		s.Confidence = recovery.ConfidenceFair
		if (!s.CRC || end == size && crc && habitOf(b[:end]) != habitNone) && h.framed(b, end, s.Markers) {
			return true
		}
	}
	return false
}

// framed reports whether an FPDU may begin at the anchor, and ends with a TCP segment or in front
// of where another one may begin.
func (h *half) framed(b []byte, size int, markers bool) bool {
	lead, next := layout.LeadLen(0, markers), size+layout.LeadLen(uint64(size), markers)
	if markers && !zeroes(b) || mayBegin(b[lead:]) == 0 {
		return false
	}
	return h.segmentEnds(h.anchor.at+uint64(size)) || next < len(b) && mayBegin(b[next:]) > 0
}

// leadsTo reports whether FPDUs lead from the anchor to where some were found, and begins Full
// Operation there: what is in front of those found is in error. CRCs are taken for on if the frames
// say so, until many are wrong.
func (h *half) leadsTo(s recovery.Sync) bool {
	a, at := &h.anchor, 0
	if !a.open || s.Offset < a.at || s.Markers && s.Phase != int(a.at%layout.MarkerInterval) {
		return false
	}
	to := int(s.Offset - a.at)
	for at < to && at < len(a.bytes) {
		_, size, ok := layout.Measure(uint64(at), a.bytes[at:], s.Markers)
		if !ok {
			return false
		}
		at += size
	}
	if at != to {
		return false
	}
	_, crc := h.declared()
	proved := s.CRC || !crc
	s.Offset, s.CRC = a.at, s.CRC || crc
	h.operateAt(&s, true, proved)
	return true
}

// operateAt begins Full Operation at the anchor. first tells that nothing was sent before, and
// proved that no other mode is possible.
func (h *half) operateAt(s *recovery.Sync, first, proved bool) {
	c, at, b := h.c, h.anchor.at, h.anchor.bytes
	c.found()
	p, told := c.pub, c.pub.Midstream
	h.anchor = anchor{}
	p.Midstream, p.Confidence, p.CRC, p.Markers[h.dir] = true, max(p.Confidence, s.Confidence), s.CRC, s.Markers
	h.operate(at)
	h.full.proved, h.full.plain, h.full.guessed = proved, !s.Markers, !first
	if !first {
		h.uncertain()
	}
	h.buf, h.hints, h.row = nil, 0, row{}
	if _, last := h.in.stamps(at, at+1); !told {
		p.Version = versionUnknown
		c.report(findMidstream, h.dir, at, last, h.foundBy(s), h.midstreamAdvice())
	}
	h.feed(at, b)
}

// foundBy says how FPDUs were found.
func (h *half) foundBy(s *recovery.Sync) string {
	return fmt.Sprintf("%v: FPDUs were found by their form, with CRC %s and markers %s, confidence: %v",
		h.c.pub.startupSeen(), wording.OnOff(s.CRC), wording.OnOff(s.Markers), s.Confidence)
}
