package decode

import (
	"bytes"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
)

// A doubt is whether the FPDUs of a direction are in the mode that was agreed on, since
// one of them is in error before any has proved it. While they are read on in that mode,
// they are searched for in others.
type doubt struct {
	search *recovery.Receiver
	at     uint64 // where the FPDU in error begins
	first  []byte // its bytes, until they are given to the search
	given  int    // bytes given to it
	sync   recovery.Sync
	events []recovery.Event // of the search since sync
	found  int              // FPDUs that it has found since sync
}

// manyWrong is how many FPDUs in a row show that CRCs are off, if none has the right one: one
// wrong CRC shows damage.
const manyWrong = 4

// proves takes note of an FPDU that is valid in the mode that was agreed on.
func (h *half) proves(f *FPDU) {
	h.full.doubt = nil
	h.full.proved = h.full.proved || len(f.Markers) > 0 || !h.c.pub.Markers[h.dir]
}

// reconsider begins to doubt the mode that was agreed on.
func (h *half) reconsider(f *FPDU) {
	x := &h.full
	if x.guessed || x.proved || x.doubt != nil || f.Bytes == nil {
		return
	}
	x.doubt = &doubt{search: h.newGuess(), at: f.Offset, first: bytes.Clone(f.Bytes)}
}

// searchOtherModes gives bytes to the search in other modes.
func (h *half) searchOtherModes(at uint64, b []byte) {
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
	h.checkOtherModes(d)
}

// checkOtherModes looks at what the search has found, and goes on in the mode that it has found
// if that cannot be the one that was agreed on.
func (h *half) checkOtherModes(d *doubt) {
	for ev, ok := d.search.Next(); ok; ev, ok = d.search.Next() {
		if !d.takes(&ev) {
			h.full.doubt = nil
			return
		}
		if d.sync.FPDUs > 0 && h.differs(d) {
			h.foundOther(d)
			return
		}
	}
}

// takes takes what the search has found, and reports whether a doubt is left.
func (d *doubt) takes(ev *recovery.Event) bool {
	switch {
	case ev.Kind == recovery.Resynced && !convincing(&ev.Sync):
		return false
	case ev.Kind == recovery.Resynced:
		d.sync, d.found, d.events = ev.Sync, 0, nil
	case d.sync.FPDUs == 0:
		return true
	case ev.Kind == recovery.Placed && d.sync.CRC:
		d.sync.Offset, d.sync.Bytes, d.events = ev.Offset, ev.End-ev.Offset, nil
	case ev.Kind == recovery.Placed:
		if d.found++; layout.CRCValid(ev.Bytes) {
			return false // they are on
		}
	}
	d.events = append(d.events, cloned(ev))
	return true
}

// foundOther goes on in another mode, with what the search has found in it.
func (h *half) foundOther(d *doubt) {
	h.guess = d.search
	h.foundMidstream(&d.sync)
	for i := range d.events {
		h.ordered(&d.events[i])
	}
	h.drain()
}

// differs reports whether FPDUs that were found are not in the mode that was agreed on.
func (h *half) differs(d *doubt) bool {
	s, crc, markers := &d.sync, h.c.pub.CRC, h.c.pub.Markers[h.dir]
	switch {
	case crc && !s.CRC:
		return max(s.FPDUs, d.found) >= manyWrong
	case s.CRC != crc || s.Markers && !markers:
		return true
	}
	due := s.Offset + uint64(layout.NextMarker(s.Offset-h.full.base))
	return markers && !s.Markers && due < s.Offset+s.Bytes
}
