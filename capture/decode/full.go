package decode

import (
	"math"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// full is a direction in Full Operation.
type full struct {
	rec     *mpa.Recovery
	base    uint64 // stream offset at which its offsets begin
	raw     []byte // octets as on the stream, from rawAt on
	rawAt   uint64
	guessed bool   // the startup is not known
	plain   bool   // and yet it is sure that there are no markers
	chain   uint64 // octets in FPDUs that follow each other, without markers
	bad     bool   // since the last FPDU that was right
	empty   bool   // no FPDU was seen yet
	edge    uint64 // behind the last FPDU
	markers []Marker
	memory  memory
}

// operate begins Full Operation at a stream offset.
func (h *half) operate(at uint64) {
	h.full = full{base: at, rawAt: at, empty: true, edge: at}
	h.full.rec = mpa.NewRecovery(mpa.RecoveryConfig{
		Markers: h.c.pub.Markers[h.dir], CRC: h.c.pub.CRC, Resync: true, Plausible: plausible,
	})
	h.enter(at)
}

// enter begins Full Operation with the Recovery there is.
func (h *half) enter(at uint64) {
	h.mode, h.at, h.guess = modeFull, at, nil
	h.out().Start = at
	h.messages = messages{}
	h.full.memory = newMemory(h, at)
}

// feed takes octets in order.
func (h *half) feed(at uint64, b []byte) {
	f := &h.full
	if h.keepsRaw() {
		f.raw = append(f.raw, b...)
	}
	h.at = at + uint64(len(b))
	f.memory.late(at, b)
	f.rec.Segment(at-f.base, b)
	h.drain()
}

// keepsRaw reports whether octets are kept as they are: for consumers that want them,
// and of the first FPDU, as there is something to be seen in its CRC field when CRC is
// off.
func (h *half) keepsRaw() bool { return h.c.d.cfg.Octets || h.full.empty }

// skip gives up missing octets before an offset.
func (h *half) skip(end uint64) {
	f := &h.full
	f.raw, f.rawAt = f.raw[:0], end
	h.at = end
	h.uncertain()
	f.memory.gap(end)
	f.rec.SkipTo(end - f.base)
	h.drain()
}

// flush brings out what is left at the end of a direction.
func (h *half) flush(e *capture.End) {
	h.full.rec.SkipTo(math.MaxUint64)
	h.drain()
	if left := h.at - h.full.edge; left > 0 && e.Reason == capture.EndFIN && !h.broken && !h.full.bad {
		h.c.report(findCutOff, h.dir, h.full.edge, e.Packet, octets(left)+" of an FPDU that is not whole, and the direction is closed",
			"its sender, or what closed the connection for it, has stopped in the middle of an FPDU")
	}
}

// drain reports what the Recovery has found.
func (h *half) drain() {
	for ev, ok := h.full.rec.Next(); ok && h.mode == modeFull; ev, ok = h.full.rec.Next() {
		h.recovered(&ev)
	}
}

// recovered reports one event of the Recovery.
func (h *half) recovered(ev *mpa.Recovered) {
	base := h.full.base
	switch ev.Event {
	case mpa.EventPlaced, mpa.EventFailed, mpa.EventCut:
		h.located(ev)
	case mpa.EventLost:
		h.unlocated(base+ev.Offset, base+ev.End)
	case mpa.EventResynced:
		h.resynced(ev)
	}
}

// located reports an FPDU.
func (h *half) located(ev *mpa.Recovered) {
	if ev.Event == mpa.EventFailed && h.full.guessed && !h.full.plain && !h.c.pub.Markers[h.dir] {
		h.suspect(ev)
		return
	}
	f := &h.c.d.fpdu
	h.describe(f, ev)
	o := h.out()
	h.full.edge = f.End
	switch ev.Event {
	case mpa.EventFailed:
		o.Bad++
	case mpa.EventCut:
		o.Cut++
		h.uncertain()
	default:
		o.FPDUs++
		o.Octets += uint64(f.Size())
		o.Content += uint64(f.Length)
		o.Sizes.Add(uint64(f.Size()))
		h.full.bad = false
		h.chained(f)
	}
	o.MarkerCount += uint64(len(f.Markers))
	h.message(f)
	h.c.d.to.FPDU(h.c.pub, f)
	if f.Err != nil {
		h.failed(f)
	}
	h.firstCRC(f)
	h.judge(f)
	h.full.empty = false
	h.full.memory.placed(f.End, f.Last.Number)
	h.settle(f.End)
	if f.Err != nil && o.FPDUs == 0 && !h.full.guessed {
		h.reconsider()
	}
}

// chained takes note of an FPDU that shows whether there are markers.
func (h *half) chained(f *FPDU) {
	if x := &h.full; x.guessed && !x.plain {
		if f.Located != mpa.LocatedInOrder {
			x.chain = 0
		}
		x.chain += uint64(f.Size())
		x.plain = x.chain >= markersShow
	}
}

// describe fills in an FPDU.
func (h *half) describe(f *FPDU, ev *mpa.Recovered) {
	base, o := h.full.base, h.out()
	*f = FPDU{
		Dir: h.dir, Number: o.FPDUs + o.Bad + o.Cut + 1, Offset: base + ev.Offset, End: base + ev.End, Length: ev.Length,
		Located: ev.Located, Err: ev.Err, ULPDU: ev.ULPDU,
	}
	f.First, f.Last = h.in.stamps(f.Offset, f.End)
	h.full.markers = h.full.markers[:0]
	for _, m := range ev.Markers {
		h.full.markers = append(h.full.markers, Marker{base + m.Offset, m.FPDUPTR, m.Valid})
	}
	f.Markers = h.full.markers
	f.CRC = h.crcState(ev)
	h.boundaries(f)
	if ev.Event == mpa.EventCut {
		f.Cut = h.missingIn(f.Offset, f.End)
	}
	if h.c.d.cfg.Octets {
		f.Octets = h.octets(f.Offset, f.End)
	}
	h.parseSegment(f)
}

func (h *half) crcState(ev *mpa.Recovered) CRCState {
	_, crc, _ := h.full.rec.Mode()
	switch {
	case ev.Event == mpa.EventCut:
		return CRCUnknown
	case ev.CRCValid:
		return CRCRight
	case !crc:
		return CRCOff
	case ev.Err != nil && ev.Err.Code == mpa.CodeCRC:
		return CRCWrong
	}
	return CRCUnknown
}

// parseSegment fills in the DDP segment and the RDMAP message.
func (h *half) parseSegment(f *FPDU) {
	if f.ULPDU == nil && f.Length > 0 {
		return
	}
	seg, err := ddp.Parse(f.ULPDU)
	if err != nil {
		return
	}
	f.HasSegment, f.Segment, f.Op = true, seg, rdmap.OpcodeOf(&seg.Header)
	switch f.Op {
	case rdmap.OpReadRequest:
		if r, err := rdmap.ParseReadRequest(seg.Payload); err == nil && !seg.Tagged {
			f.ReadRequest = &r
		}
	case rdmap.OpTerminate:
		if t, err := rdmap.ParseTerminate(seg.Payload); !seg.Tagged && (err == nil || len(seg.Payload) >= 4) {
			f.Terminate = &t
		}
	}
}

// octets returns octets as on the stream, nil if they are not there.
func (h *half) octets(from, to uint64) []byte {
	f := &h.full
	if from < f.rawAt || to > f.rawAt+uint64(len(f.raw)) {
		return nil
	}
	return f.raw[from-f.rawAt : to-f.rawAt]
}

// boundaries finds out whether TCP segments begin and end with the FPDU.
func (h *half) boundaries(f *FPDU) {
	if c := h.in.at(f.Offset); c != nil {
		f.Begins = c.segment.Offset == f.Offset
		c.begins = c.begins || f.Begins
	}
	if c := h.in.at(f.End - 1); c != nil {
		f.Ends = c.segmentEnd() == f.End
	}
}

// settle counts the segments that end in an FPDU, or that it ends.
func (h *half) settle(to uint64) {
	o := h.out()
	for c := h.in.front(); c != nil && c.end <= to; c = h.in.front() {
		if c.segmentEnd() == c.end && c.end > h.full.base {
			o.Segments++
			o.LargestSegment = max(o.LargestSegment, c.segment.Length)
			if h.aligned(c, to) {
				o.Aligned++
			}
		}
		h.in.pop()
	}
	if raw := &h.full; len(raw.raw) > 0 && to > raw.rawAt {
		n := min(to-raw.rawAt, uint64(len(raw.raw)))
		raw.raw = raw.raw[:copy(raw.raw, raw.raw[n:])]
		raw.rawAt += n
	}
}

// aligned reports whether a segment begins with an FPDU and ends with one.
func (h *half) aligned(c *chunk, to uint64) bool {
	whole := c.offset == c.segment.Offset || c.counted
	return whole && c.begins && c.end == to
}

// unlocated reports octets in which no FPDU was found; those that are missing were
// reported before.
func (h *half) unlocated(from, to uint64) {
	o := h.out()
	o.Lost += to - from
	h.full.edge = to
	h.uncertain()
	_, last := h.in.stamps(from, to)
	h.full.memory.placed(to, last.Number)
	for from < to {
		next, end := to, to
		for _, g := range h.gaps {
			if g.Offset+uint64(g.Length) > from {
				next, end = max(from, min(g.Offset, to)), min(g.Offset+uint64(g.Length), to)
				break
			}
		}
		if next > from {
			h.c.d.to.Missing(h.c.pub, &Missing{Dir: h.dir, Offset: from, End: next, Captured: true, Packet: last})
		}
		from = end
	}
	h.dropGaps(to)
	h.settle(to)
}

// missing reports octets that were not captured.
func (h *half) missing(g *capture.Gap) {
	end := g.Offset + g.Length
	h.c.d.to.Missing(h.c.pub, &Missing{Dir: h.dir, Offset: g.Offset, End: end, Cause: g.Cause, Packet: g.Packet})
	h.c.report(findGap, h.dir, g.Offset, g.Packet,
		"not judged: "+octets(g.Length)+" "+g.Cause.String(), gapAdvice(g.Cause))
}

func gapAdvice(c capture.Cause) string {
	switch c {
	case capture.CauseSnap:
		return "capture whole packets: tcpdump -s 0"
	case capture.CauseLost, capture.CauseLimit:
		return "the capture lost packets: a larger buffer (tcpdump -B 65536), or a filter, helps"
	}
	return ""
}

// noteGap keeps where octets are missing, as far as it may matter yet.
func (h *half) noteGap(g *capture.Gap) {
	if h.mode == modeFull {
		h.dropGaps(h.full.edge)
	}
	if len(h.gaps) >= maxGaps {
		h.gaps = h.gaps[1:]
	}
	h.gaps = append(h.gaps, capture.Span{Offset: g.Offset, Length: int(g.Length)})
}

func (h *half) dropGaps(before uint64) {
	gaps := h.gaps
	for len(gaps) > 0 && gaps[0].Offset+uint64(gaps[0].Length) <= before {
		gaps = gaps[1:]
	}
	h.gaps = append(h.gaps[:0], gaps...)
}

// missingIn returns how many octets of a range are missing.
func (h *half) missingIn(from, to uint64) (n int) {
	for _, g := range h.gaps {
		lo, hi := max(from, g.Offset), min(to, g.Offset+uint64(g.Length))
		if lo < hi {
			n += int(hi - lo)
		}
	}
	if to > h.at {
		n += int(to - max(h.at, from))
	}
	return n
}

// resynced takes note of a boundary that was found again.
func (h *half) resynced(ev *mpa.Recovered) {
	h.uncertain()
	if h.c.pub == nil || !h.full.bad {
		return
	}
	h.full.bad = false
	_, last := h.in.stamps(h.full.base+ev.Offset, h.full.base+ev.Offset+1)
	h.c.report(findResynced, h.dir, h.full.base+ev.Offset, last, "FPDUs are found again from here on: "+ev.Sync.Confidence.String()+" confidence",
		"a receiver has given up before; only the capture is read on")
}
