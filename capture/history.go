package capture

import (
	"cmp"
	"hash/maphash"
)

const (
	// historySize is how many segments are remembered, of all connections together.
	historySize = 1 << 15

	// maxRecall is how far back a segment that comes again is looked for.
	maxRecall = 8192

	// recallEach is how many records may be looked at for each one that is added, and recallMost how many may be
	// looked at in a row: a capture in which everything comes again takes time that is linear in its length.
	recallEach, recallMost = 64, 64 * maxRecall
)

// A history remembers the last segments by a hash of their bytes, to compare them
// with those that come again. Records of a direction are linked.
type history struct {
	ring []record
	last uint64 // index of the newest record, from 1 on
	seed maphash.Seed
	left int // records that may be looked at
}

// A record is the bytes of a segment that were new.
type record struct {
	Span
	captured int // bytes that the hash is of
	hash     uint64
	packet   uint64 // number
	previous uint64 // index of the direction's record before, 0 for none
}

func newHistory() history { return history{seed: maphash.MakeSeed(), left: recallMost} }

// add remembers a piece, after the direction's latest record, and returns the
// index of the new one.
func (h *history) add(p *piece, latest uint64) uint64 {
	h.last++
	h.left = min(h.left+recallEach, recallMost)
	r := record{p.Span, len(p.data), maphash.Bytes(h.seed, p.data), p.packet.Number, latest}
	if len(h.ring) < historySize {
		h.ring = append(h.ring, r)
	} else {
		h.ring[(h.last-1)%historySize] = r
	}
	return h.last
}

// at returns a record, and nil if it was forgotten.
func (h *history) at(index uint64) *record {
	if index == 0 || h.last-index >= historySize {
		return nil
	}
	return &h.ring[(index-1)%historySize]
}

// recall compares a segment with the records of its direction. first is the number
// of the packet which had its first byte, or the first of those that differ.
// repeated is how many bytes of it were not new.
func (h *history) recall(latest uint64, s Span, data []byte, repeated int) (m Match, first uint64) {
	for compared := 0; ; {
		r := h.at(latest)
		if r == nil || h.last-latest > maxRecall || h.left == 0 {
			return MatchUnknown, first
		}
		h.left--
		latest = r.previous
		if s.Offset >= r.Offset && s.Offset < r.endOffset() {
			first = r.packet
		}
		switch m := h.compare(r, s, data); {
		case m == MatchDiffers:
			return m, r.packet
		case m == MatchSame:
			compared += r.Length
		}
		if compared >= repeated {
			return MatchSame, cmp.Or(first, r.packet)
		}
	}
}

// compare compares a record with what a segment has of the same bytes.
func (h *history) compare(r *record, s Span, data []byte) Match {
	if r.Offset < s.Offset || r.endOffset() > s.endOffset() {
		return MatchUnknown
	}
	at := int(r.Offset - s.Offset)
	if at+r.captured > len(data) {
		return MatchUnknown
	}
	if maphash.Bytes(h.seed, data[at:at+r.captured]) != r.hash {
		return MatchDiffers
	}
	return MatchSame
}
