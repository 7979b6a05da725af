package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// mayMissStartup reports whether the startup of a direction may lie where the capture has
// nothing, so that FPDUs are searched for without it.
func (h *half) mayMissStartup() bool {
	return h.broken || h.peer().broken || h.c.lenient || h.c.tcp.Halves[h.dir].Midstream ||
		h.c.pub != nil && h.c.pub.Midstream
}

// plausible tells whether a ULPDU may be one: by the control bytes of DDP and RDMAP,
// and what has to agree with them.
func plausible(ulpdu []byte) bool {
	s, err := ddp.Parse(ulpdu)
	if err != nil || s.Version > 1 || s.Rsvd != 0 || s.RsvdULP&0x30 != 0 {
		return false
	}
	if rdmap.CheckSegment(&s, s.Version) != nil {
		return false
	}
	return s.Tagged || s.MO == 0 || !s.Last || s.MSN != 0
}

// hinted reports whether bytes look as if FPDUs could be found there, so that the search
// is worth its while, which takes long: a TCP segment begins with what may be one, or
// holds two in a row. Neither is a great wonder, and is believed some times only.
func (h *half) hinted(d *capture.Data) bool {
	if d.Offset == d.Segment.Offset && (mayBegin(d.Bytes) > 0 || zeroes(d.Bytes) &&
		mayBegin(d.Bytes[markerSize:]) > 0) {
		return true
	}
	if h.combed > maxGuess {
		return false
	}
	h.combed += len(d.Bytes)
	for i := range d.Bytes {
		if n := mayBegin(d.Bytes[i:]); n > 0 && i+n < len(d.Bytes) && mayBegin(d.Bytes[i+n:]) > 0 {
			return true
		}
	}
	return false
}

// markerSize is the bytes of a marker.
const markerSize = 4

// zeroes reports whether bytes begin with the marker in front of an FPDU.
func zeroes(b []byte) bool { return len(b) > markerSize && [markerSize]byte(b) == [markerSize]byte{} }

// mayBegin returns how many bytes an FPDU takes that may begin here, if there are no
// markers in it, and 0 if none may.
func mayBegin(b []byte) int {
	const control, least, most = 2, 14, 18
	if len(b) < control+least || b[control]&0x3e != 0 || b[control+1]&0xb0 != 0 {
		return 0
	}
	r := mpa.NewReader(false, false)
	length, _ := r.Peek(b)
	if length < least || !plausibleHeader(b[control:min(len(b), control+most)]) {
		return 0
	}
	size, _ := r.Skip(length)
	return size
}

// plausibleHeader is plausible for the headers alone.
func plausibleHeader(b []byte) bool {
	s, err := ddp.Parse(b)
	if err != nil || s.Version > 1 || s.Rsvd != 0 || s.RsvdULP&0x30 != 0 {
		return false
	}
	version, op := rdmap.ParseControl(s.RsvdULP)
	info, known := op.Info()
	return known && version == s.Version && info.Tagged == s.Tagged && (s.Tagged || s.QN == info.QN)
}

// guessAt searches for FPDUs, once there is a hint that there are any.
func (h *half) guessAt(d *capture.Data) {
	if h.guess == nil && (h.hints >= maxHints || !h.hinted(d)) {
		return
	}
	at, b := d.Offset, d.Bytes
	if h.guess == nil {
		h.guess = h.newGuess()
		h.guessed = 0
		h.hints++
	}
	h.guess.Segment(at, b)
	h.guessed += len(b)
	h.guesses()
	if h.guess != nil && h.guessed > maxGuess {
		h.guess = nil // until the next hint
		h.in.drop(h.at)
	}
}

// newGuess returns a search for FPDUs in any mode.
func (h *half) newGuess() *recovery.Receiver {
	return h.receiver(recovery.Config{MidStream: true, Guess: true, Buffer: maxGuess}, 0)
}

// guesses looks at what the search has found.
func (h *half) guesses() {
	for ev, ok := h.guess.Next(); ok; ev, ok = h.guess.Next() {
		switch {
		case ev.Kind != recovery.Resynced:
		case convincing(&ev.Sync) && h.leadsTo(ev.Sync):
			return
		case convincing(&ev.Sync):
			h.foundMidstream(&ev.Sync)
			h.recovered(&ev)
			h.drain()
			return
		default:
			h.guess = nil
			return
		}
	}
}

// convincing reports whether a boundary is enough to take a stream for FPDUs.
func convincing(s *recovery.Sync) bool {
	return s.Confidence >= recovery.ConfidenceCertain || s.Plausible > 0 && s.Confidence >= recovery.ConfidenceFair
}

// foundMidstream begins Full Operation where FPDUs were found without a startup, or
// otherwise than the startup says.
func (h *half) foundMidstream(s *recovery.Sync) {
	c := h.c
	c.found()
	p, end := c.pub, h.at+uint64(len(h.buf))
	first, agreed := !p.Midstream, p.Agreed
	h.full = full{rec: h.guess, guessed: true, empty: true, edge: s.Offset}
	p.Markers[h.dir] = s.Markers
	if !agreed {
		p.Midstream, p.Confidence, p.CRC = true, max(p.Confidence, s.Confidence), s.CRC
	}
	h.enter(s.Offset)
	h.anchor = anchor{}
	h.at, h.buf = end, nil // the search has them
	h.uncertain()
	h.hints = 0
	h.confirm(s)
	_, last := h.in.stamps(s.Offset, s.Offset+1)
	switch {
	case agreed:
		c.report(findOtherMode, h.dir, s.Offset, last,
			fmt.Sprintf("read with CRC %s and markers %s from here on, which is not what was agreed on",
				wording.OnOff(s.CRC), wording.OnOff(s.Markers)),
			"the sender does not keep to the startup, or has another view of it: look at M and C of both frames")
	case first:
		p.Version = versionUnknown
		c.report(findMidstream, h.dir, s.Offset, last,
			h.foundBy(s), h.midstreamAdvice())
	}
}

// midstreamAdvice says how to see what was agreed on. Without the SYN nothing tells yet whether the other direction
// comes: see oneSided.
func (h *half) midstreamAdvice() string {
	if h.peer().unseen() && !h.c.tcp.Halves[h.dir].Midstream {
		return bothAdvice
	}
	return h.c.pub.startupSeen().advice()
}

// oneSided reports that the capture has one direction only, now that it is over and was not known before.
func (c *conn) oneSided() {
	for i := range c.halves {
		h := &c.halves[i]
		if c.pub.Midstream && h.peer().unseen() && c.tcp.Halves[i].Midstream {
			c.report(findMidstream, h.dir, h.end.Offset, h.end.Packet, "the other direction is not in the capture", bothAdvice)
		}
	}
}

// bothAdvice is for a connection of which one direction was captured.
const bothAdvice = "the capture has one direction only: capture both, to see what was agreed on"

// unseen reports whether nothing of the direction was captured.
func (h *half) unseen() bool { return h.c.over == nil && h.c.tcp.Halves[h.dir].Count.Packets == 0 }

// markersShow is how many bytes in FPDUs that follow each other cannot be without a
// marker, if there are any.
const markersShow = 512 + 4

// doubtful is an FPDU in error, unless it was a wrong guess that there are no markers.
type doubtful struct {
	offset       uint64
	whole        bool // it ends with a TCP segment, as it would not if there were a marker in it
	packet       capture.Stamp
	text, advice string
}

// suspect begins to search anew after an FPDU in error: a stream whose markers were not
// in what the guess rests on is like one without, up to the first marker.
func (h *half) suspect(ev *recovery.Event) {
	d := doubtful{offset: h.full.base + ev.Offset,
		text: fmt.Sprintf("FPDU: bad %s: %s", ev.Err.Field, ev.Err.Reason), advice: ev.Err.Hint}
	d.whole = h.segmentEnds(h.full.base + ev.End)
	_, d.packet = h.in.stamps(d.offset, h.full.base+ev.End)
	h.doubtful = &d
	h.mode, h.from, h.head, h.frame = modeSearch, h.at, nil, nil
	h.uncertain()
}

// confirm reports the FPDU in error, if there are no markers all the same.
func (h *half) confirm(s *recovery.Sync) {
	d := h.doubtful
	h.full.plain = !s.Markers && s.Bytes >= markersShow
	if d == nil || !s.Markers && !h.full.plain {
		return
	}
	if h.doubtful = nil; !s.Markers {
		h.inError(d)
	}
}

// inError reports an FPDU in error that was put aside.
func (h *half) inError(d *doubtful) {
	h.publicHalf().Bad++
	h.c.report(findCRC, h.dir, d.offset, d.packet, d.text, d.advice)
}

// versionUnknown stands for a version of DDP and RDMAP that no FPDU has told yet.
const versionUnknown = 0xff
