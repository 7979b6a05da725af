package decode

import (
	"bytes"

	"github.com/goiwarp/iwarp/mpa/layout"
	"github.com/goiwarp/iwarp/mpa/recovery"
)

// A doubt is whether the FPDUs of a direction are in the mode that was agreed on, since
// one of them is in error before any has proved it. While they are read on in that mode,
// they are searched for in others.
type doubt struct {
	search *recovery.Receiver
	at     uint64 // where the FPDU in error begins
	first  []byte // its octets, until they are given to the search
	given  int    // octets given to it
	sync   recovery.Sync
}

// proves takes note of an FPDU that is valid in the mode that was agreed on.
func (h *half) proves(f *FPDU) {
	h.full.doubt = nil
	h.full.proved = h.full.proved || len(f.Markers) > 0 || !h.c.pub.Markers[h.dir]
}

// reconsider begins to doubt the mode that was agreed on.
func (h *half) reconsider(f *FPDU) {
	x := &h.full
	if x.guessed || x.proved || x.doubt != nil || f.Octets == nil {
		return
	}
	x.doubt = &doubt{search: newGuess(), at: f.Offset, first: bytes.Clone(f.Octets)}
}

// doubts gives octets to the search in other modes.
func (h *half) doubts(at uint64, b []byte) {
	d := h.full.doubt
	if d == nil {
		return
	}
	if d.first != nil {
		end := d.at + uint64(len(d.first))
		if end < at {
			h.full.doubt = nil // what was in between is gone
			return
		}
		at, b = d.at, append(d.first, b[end-at:]...)
		d.first = nil
	}
	if d.given += len(b); d.given > maxGuess {
		h.full.doubt = nil
		return
	}
	d.search.Segment(at, b)
	h.doubted(d)
}

// doubted looks at what the search has found, and goes on in the mode that it has found
// if that cannot be the one that was agreed on.
func (h *half) doubted(d *doubt) {
	for ev, ok := d.search.Next(); ok; ev, ok = d.search.Next() {
		switch {
		case ev.Kind == recovery.Resynced && !convincing(&ev.Sync):
			h.full.doubt = nil
			return
		case ev.Kind == recovery.Resynced:
			d.sync = ev.Sync
		case ev.Kind == recovery.Placed && d.sync.FPDUs > 0:
			d.sync.Offset, d.sync.Octets = ev.Offset, ev.End-ev.Offset
		default:
			continue
		}
		if h.differs(&d.sync) {
			h.guess = d.search
			h.foundMidstream(&d.sync)
			h.recovered(&ev)
			h.drain()
			return
		}
	}
}

// differs reports whether FPDUs that were found are not in the mode that was agreed on.
func (h *half) differs(s *recovery.Sync) bool {
	crc, markers := h.c.pub.CRC, h.c.pub.Markers[h.dir]
	if s.CRC != crc || s.Markers && !markers {
		return true
	}
	due := s.Offset + uint64(layout.NextMarker(s.Offset-h.full.base))
	return markers && !s.Markers && due < s.Offset+s.Octets
}
