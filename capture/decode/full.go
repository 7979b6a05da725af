package decode

import (
	"math"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// full is a direction in Full Operation.
type full struct {
	rec     *recovery.Receiver
	base    uint64           // stream offset at which its offsets begin
	ahead   []recovery.Event // FPDUs that wait for those in front of them
	guessed bool             // the startup is not known
	plain   bool             // and yet it is sure that there are no markers
	chain   uint64           // bytes in FPDUs that follow each other, without markers
	bad     bool             // since the last FPDU that was right
	empty   bool             // no FPDU was seen yet
	large   bool             // one that is far larger than a segment was reported
	edge    uint64           // everything before it is decided
	located uint64           // where the last FPDU that was told of ends, whole or not
	cut     uint64           // where the last FPDU of which bytes are missing begins
	whole   uint64           // where the last whole FPDU that was found ends
	proved  bool             // the mode that was agreed on is that of the stream
	doubt   *doubt           // searches for FPDUs in another mode
	padded  bool             // an FPDU had a pad of another size than it must have
	closing bool             // there is nothing after what was received
	habit   habit            // what the CRC field of the last FPDU holds, if that is wrong
	markers []Marker
	memory  memory
}

// operate begins Full Operation at a stream offset.
func (h *half) operate(at uint64) {
	h.full = full{base: at, empty: true, edge: at}
	h.full.rec = h.newReceiver()
	h.enter(at)
}

// newReceiver returns a Receiver in the mode that was agreed on.
func (h *half) newReceiver() *recovery.Receiver {
	return h.receiver(recovery.Config{Markers: h.c.pub.Markers[h.dir], CRC: h.c.pub.CRC}, h.full.base)
}

// enter begins Full Operation with the Receiver there is.
func (h *half) enter(at uint64) {
	h.mode, h.at, h.guess = modeFull, at, nil
	h.publicHalf().Start = at
	h.messages = messages{}
	h.full.memory = newMemory(h, at)
}

// feed takes bytes in order.
func (h *half) feed(at uint64, b []byte) {
	f := &h.full
	h.at = at + uint64(len(b))
	f.memory.late(at, b)
	f.rec.Segment(at-f.base, b)
	h.drain()
	h.searchOtherModes(at, b)
}

// skip gives up missing bytes before an offset.
func (h *half) skip(end uint64) {
	f := &h.full
	h.at = end
	h.uncertain()
	f.memory.gap(end)
	f.rec.SkipTo(end - f.base)
	h.drain()
	f.doubt = nil
}

// flush brings out what is left at the end of a direction.
func (h *half) flush(e *capture.End) {
	if d := h.full.doubt; d != nil {
		d.search.SkipTo(math.MaxUint64)
		h.checkOtherModes(d)
	}
	edge := h.full.edge
	if edge > h.at { // doubted has brought an FPDU that is not whole
		edge = h.full.cut
	}
	h.full.closing = e.Reason == capture.EndFIN
	h.full.rec.SkipTo(math.MaxUint64)
	h.drain()
	h.release(math.MaxUint64)
	edge = min(max(edge, h.full.whole), h.at) // FPDUs may have been found after one in error
	left := h.at - edge
	if left == 0 || h.broken || h.full.bad {
		return
	}
	k, text := findCutOff, wording.Bytes(left)+" of an FPDU that is not whole, and then "
	switch e.Reason {
	case capture.EndFIN:
		h.c.report(k, h.dir, edge, e.Packet, text+"the direction is closed",
			"the sender, or whatever closed its connection, stopped in the middle of an FPDU")
		return
	case capture.EndRST:
		text += "the connection is reset"
	default:
		text += "the capture has no more of the connection"
	}
	k.severity = Note
	h.c.report(k, h.dir, edge, e.Packet, text, "")
}

// drain reports what the Receiver has found.
func (h *half) drain() {
	for ev, ok := h.full.rec.Next(); ok && h.mode == modeFull; ev, ok = h.full.rec.Next() {
		h.ordered(&ev)
	}
}

// recovered reports one event of the Receiver.
func (h *half) recovered(ev *recovery.Event) {
	base := h.full.base
	switch ev.Kind {
	case recovery.Placed, recovery.Failed, recovery.Cut:
		h.located(ev)
	case recovery.Lost:
		h.unlocated(base+ev.Offset, base+ev.End)
	case recovery.Resynced:
		h.resynced(ev)
	}
}

// located reports an FPDU.
func (h *half) located(ev *recovery.Event) {
	if ev.Kind == recovery.Failed && h.full.guessed && !h.full.plain && !h.c.pub.Markers[h.dir] {
		h.suspect(ev)
		return
	}
	f := &h.c.d.fpdu
	h.describe(f, ev)
	if ev.Kind == recovery.Cut {
		h.full.cut = f.Offset
	}
	if h.failedAt.Length > 0 && f.Offset == h.failedAt.Offset {
		h.recountValid(f)
		return
	}
	h.counts(ev.Kind, f)
	h.message(f)
	h.c.d.to.FPDU(h.c.pub, f)
	h.judgeFrame(f)
	h.judge(f)
	h.oversized(f)
	h.full.empty = false
	h.full.located = max(h.full.located, f.End)
	if ev.Kind != recovery.Cut {
		h.full.whole = max(h.full.whole, f.End)
	}
	h.account(f.Offset, f.End, f.Last)
	if ev.Kind != recovery.Failed || ev.Delivered >= ev.End { // else an FPDU may be found before its end
		h.decideUpTo(f.End, f.Last.Number)
	}
	if f.Err != nil && f.ULPDU == nil {
		h.reconsider(f)
	}
}

// judgeFrame judges what is MPA's of an FPDU.
func (h *half) judgeFrame(f *FPDU) {
	if f.Err != nil {
		h.failed(f)
	}
	h.firstCRC(f)
	if f.Err == nil {
		h.pad(f)
	}
}

// counts counts an FPDU.
func (h *half) counts(kind recovery.Kind, f *FPDU) {
	o := h.publicHalf()
	switch kind {
	case recovery.Failed:
		o.Bad++
		h.failedAt = capture.Span{Offset: f.Offset, Length: f.Size()}
	case recovery.Cut:
		o.Cut++
		h.uncertain()
	default:
		o.whole(f)
		h.full.bad, h.full.habit = false, habitNone
		h.chained(f)
		h.proves(f)
	}
	o.MarkerCount += uint64(len(f.Markers))
}

// whole counts a whole FPDU. Its pad alone may be wrong.
func (h *Half) whole(f *FPDU) {
	if !f.right() {
		h.Bad++
		return
	}
	h.FPDUs++
	h.Bytes += uint64(f.Size())
	h.Content += uint64(f.Length)
	h.Sizes.Add(uint64(f.Size()))
}

// chained takes note of an FPDU that shows whether there are markers.
func (h *half) chained(f *FPDU) {
	if x := &h.full; x.guessed && !x.plain {
		if f.Located != recovery.LocatedInOrder {
			x.chain = 0
		}
		x.chain += uint64(f.Size())
		x.plain = x.chain >= markersShow
	}
}

// describe fills in an FPDU.
func (h *half) describe(f *FPDU, ev *recovery.Event) {
	base, o := h.full.base, h.publicHalf()
	*f = FPDU{
		Dir: h.dir, Number: o.FPDUs + o.Bad + o.Cut + 1, Offset: base + ev.Offset,
		End: base + ev.End, Length: ev.Length,
		Located: ev.Located, Err: ev.Err, ULPDU: ev.ULPDU, Bytes: ev.Bytes,
	}
	f.First, f.Last = h.in.stamps(f.Offset, f.End)
	h.full.markers = h.full.markers[:0]
	for _, m := range ev.Markers {
		h.full.markers = append(h.full.markers, Marker{base + m.Offset, m.FPDUPTR, m.Valid})
	}
	f.Markers = h.full.markers
	f.CRC = h.crcState(ev)
	if ev.Kind == recovery.Cut {
		f.Cut = h.missingIn(f.Offset, f.End)
	}
	h.parseSegment(f)
	h.boundaries(f)
}

func (h *half) crcState(ev *recovery.Event) CRCState {
	_, crc, _ := h.full.rec.Mode()
	switch {
	case ev.Kind == recovery.Cut:
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

// decideUpTo takes note that everything before an offset is decided, as of a packet: it
// counts the segments that end before.
func (h *half) decideUpTo(to, packet uint64) {
	o := h.publicHalf()
	h.full.edge = to
	h.full.memory.placed(to, packet)
	for c := h.in.front(); c != nil && c.end <= to; c = h.in.front() {
		if c.segmentEnd() == c.end && c.end > h.full.base {
			o.Segments++
			o.LargestSegment = max(o.LargestSegment, c.segment.Length)
			if h.aligned(c, to) {
				o.Aligned++
			}
			h.onWire(c)
		}
		h.in.pop()
	}
}

// aligned reports whether a segment begins with an FPDU and ends with one.
func (h *half) aligned(c *chunk, to uint64) bool {
	whole := c.offset == c.segment.Offset || c.counted
	return whole && c.begins && c.end == to
}

// unlocated takes note of bytes in which no FPDU was found, or that are missing.
func (h *half) unlocated(from, to uint64) {
	h.uncertain()
	_, last := h.in.stamps(from, to)
	h.publicHalf().Lost += to - min(max(from, h.full.located), to) // an FPDU in error was told of as that
	h.decideUpTo(to, last.Number)
}

// missing reports bytes that were not captured.
func (h *half) missing(g *capture.Gap) {
	end := g.Offset + g.Length
	h.c.d.to.Missing(h.c.pub, &Missing{Dir: h.dir, Offset: g.Offset, End: end, Cause: g.Cause, Packet: g.Packet})
	advice := gapAdvice(g.Cause)
	if h.unseen() {
		advice = bothAdvice
	}
	h.c.report(findGap, h.dir, g.Offset, g.Packet, "not judged: "+wording.Bytes(g.Length)+" "+g.Cause.String(), advice)
}

func gapAdvice(c capture.Cause) string {
	switch c {
	case capture.CauseSnap:
		return "capture whole packets: tcpdump -s 0"
	case capture.CauseLost, capture.CauseLimit:
		return "the capture lost packets: use a larger buffer (tcpdump -B 65536) or a filter"
	}
	return ""
}

// noteGap keeps where bytes are missing, as far as it may matter yet.
func (h *half) noteGap(g *capture.Gap) {
	h.dropGaps(h.told)
	if len(h.gaps) >= maxGaps {
		h.gaps = h.gaps[1:]
	}
	h.gaps = append(h.gaps, *g)
}

func (h *half) dropGaps(before uint64) {
	gaps := h.gaps
	for len(gaps) > 0 && gaps[0].Offset+gaps[0].Length <= before {
		gaps = gaps[1:]
	}
	h.gaps = append(h.gaps[:0], gaps...)
}

// missingIn returns how many bytes of a range are missing.
func (h *half) missingIn(from, to uint64) (n int) {
	for _, g := range h.gaps {
		lo, hi := max(from, g.Offset), min(to, g.Offset+g.Length)
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
func (h *half) resynced(ev *recovery.Event) {
	h.uncertain()
	if h.c.pub == nil || !h.full.bad {
		return
	}
	h.full.bad = false
	_, last := h.in.stamps(h.full.base+ev.Offset, h.full.base+ev.Offset+1)
	h.c.report(findResynced, h.dir, h.full.base+ev.Offset, last,
		"FPDUs are found again from here on, confidence: "+ev.Sync.Confidence.String(),
		"a receiver has given up by now; only this reader goes on")
}
