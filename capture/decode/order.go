package decode

import (
	"bytes"
	"slices"

	"github.com/goiwarp/iwarp/internal/recovery"
)

// ordered hands the events of the Receiver on in the order of the stream. An FPDU that
// a marker has located ahead of it waits until what is in front of it is known.
func (h *half) ordered(ev *recovery.Event) {
	f := &h.full
	if ev.Kind == recovery.Placed && ev.Delivered <= ev.Offset {
		f.wait(ev)
		return
	}
	if ev.Kind != recovery.Resynced {
		h.release(ev.Offset)
	}
	h.recovered(ev)
	h.release(ev.Delivered)
}

// wait keeps an FPDU that was located ahead of the order.
func (f *full) wait(ev *recovery.Event) {
	i, _ := slices.BinarySearchFunc(f.ahead, ev.Offset,
		func(e recovery.Event, at uint64) int { return int(int64(e.Offset - at)) })
	f.ahead = slices.Insert(f.ahead, i, cloned(ev))
}

// cloned returns an event that stays as it is when the Receiver goes on.
func cloned(ev *recovery.Event) recovery.Event {
	kept := *ev
	kept.ULPDU, kept.Bytes, kept.Markers = bytes.Clone(ev.ULPDU), bytes.Clone(ev.Bytes), slices.Clone(ev.Markers)
	return kept
}

// release hands on the FPDUs that waited and begin before an offset.
func (h *half) release(before uint64) {
	f := &h.full
	for h.mode == modeFull && len(f.ahead) > 0 && f.ahead[0].Offset < before {
		ev := f.ahead[0]
		f.ahead = slices.Delete(f.ahead, 0, 1)
		h.recovered(&ev)
	}
}
