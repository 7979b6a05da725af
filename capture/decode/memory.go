package decode

import (
	"cmp"
	"slices"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/recovery"
)

// maxPlace bounds what a receiver is imagined to hold, in bytes.
const maxPlace = 8 << 20

// memory measures what the receiver of a direction holds, from what came when.
//
// CULLEY, section 13.1.2: without Header Alignment a receiver has to hold what it cannot
// place yet, and with it "the receiver buffers no longer scale with number of
// connections".
type memory struct {
	start uint64 // of Full Operation
	seen  uint64 // segments from there on are given to arrived
	got   uint64 // bytes that have arrived, and those that never will
	whole uint64 // FPDUs before are complete
	most  int
	place *recovery.Receiver // a receiver that places by markers, if there are any

	steps   []step // of a receiver that can locate every FPDU, since the last hole
	holds   int    // what it held before them
	located int    // the most that it held
	skipped bool   // there were too many steps
}

// A step is what a packet adds to what is held, or takes away.
type step struct {
	packet uint64
	n      int
}

// maxSteps bounds the steps of a direction that are kept.
const maxSteps = 32768

// step takes note of one.
func (m *memory) step(packet uint64, n int) {
	if len(m.steps) >= maxSteps {
		m.skipped = true
		return
	}
	m.steps = append(m.steps, step{packet, n})
}

// replay goes through the steps in the order of the packets, now that no hole is left and
// so all FPDUs are known that were complete.
func (m *memory) replay() {
	slices.SortStableFunc(m.steps, func(a, b step) int { return cmp.Compare(a.packet, b.packet) })
	for i, s := range m.steps {
		m.holds = max(m.holds+s.n, 0)
		if i+1 == len(m.steps) || m.steps[i+1].packet != s.packet {
			m.located = max(m.located, m.holds)
		}
	}
	m.steps = m.steps[:0]
	if m.skipped {
		m.holds, m.skipped = 0, false
	}
}

// newMemory begins to measure at a stream offset; bytes after it may be there already.
func newMemory(h *half, at uint64) memory {
	m := memory{start: at, seen: at, whole: at}
	if list := h.in.list[h.in.head:]; len(list) > 0 {
		m.seen = max(at, list[len(list)-1].end)
		m.got = m.seen - at
	}
	if h.c.pub.Markers[h.dir] && !h.c.pub.Midstream {
		m.place = recovery.New(recovery.Config{Markers: true, Buffer: maxPlace})
	}
	return m
}

// arrived takes note of a segment as it came. What came before is worked off by now.
func (h *half) arrived(s *Segment, b []byte) {
	if h.mode != modeFull || s.Length == 0 || s.Offset < h.full.memory.seen {
		return
	}
	m := &h.full.memory
	m.measure()
	if m.start+m.got == h.at {
		m.replay()
	}
	if s.Order != capture.OrderRepeat {
		m.got += uint64(s.Length - s.Repeated)
		m.step(s.Packet.Number, s.Length-s.Repeated)
	}
	if m.place != nil {
		m.give(s.Offset, b)
	}
}

// late gives the imagined receiver bytes that came before it was there.
func (m *memory) late(at uint64, b []byte) {
	if m.place != nil && at < m.seen {
		m.give(at, b[:min(uint64(len(b)), m.seen-at)])
	}
}

func (m *memory) give(at uint64, b []byte) {
	m.place.Segment(at-m.start, b)
	m.drain()
}

func (m *memory) drain() {
	for _, ok := m.place.Next(); ok; {
		_, ok = m.place.Next()
	}
}

// gap takes note of bytes that were not captured.
func (m *memory) gap(end uint64) {
	m.replay()
	m.holds = 0
	m.whole = max(m.whole, end)
	m.got = max(m.got, end-m.start)
	if m.place != nil {
		m.place.SkipTo(end - m.start)
		m.drain()
	}
}

// placed takes note that bytes up to an offset are in FPDUs that are complete, the last
// of which became so in a packet.
func (m *memory) placed(to, packet uint64) {
	if to > m.whole {
		m.step(packet, -int(to-m.whole))
		m.whole = to
	}
}

// measure looks at what is held now.
func (m *memory) measure() {
	if all := m.start + m.got; all > m.whole {
		m.most = max(m.most, int(all-m.whole))
	}
}

// result returns the figures.
func (m *memory) result(largest int) Memory {
	m.measure()
	m.replay()
	r := Memory{TCP: m.most, MPA: m.most, Located: min(m.most, m.located), Aligned: largest}
	if m.place != nil {
		r.MPA = min(m.most, m.place.Stats().MostHeld)
	}
	return r
}
