package decode

import (
	"bytes"
	"slices"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// cutFrame takes a startup frame whose end the snap length has cut off, as far as a gap reaches, and reports
// whether there is one. What it lacks is the ULP's: a frame whose own fields are not whole is none, though it
// shows that the connection is iWARP.
func (h *half) cutFrame(g *capture.Gap) bool {
	if g.Cause != capture.CauseSnap || h.mode != modeSearch && h.mode != modeAnswer || len(h.buf) < shownKey {
		return false
	}
	f := h.parseCut(g)
	if f == nil || h.mode == modeAnswer && (f.Frame != FrameReply || h.c.start.request.Frame == FrameStartKey) {
		h.named()
		return false
	}
	own, rest := *g, *g
	own.Length = uint64(f.Cut)
	rest.Offset, rest.Length = g.Offset+own.Length, g.Length-own.Length
	h.noteGap(&own)
	if h.c.pub != nil {
		h.missing(&own)
	}
	h.buf = nil
	if h.mode == modeAnswer {
		h.c.answered(h, f)
	} else if !h.c.handleFrame(h, f) {
		candidate := h.frame
		h.stream(f.Bytes)
		h.frame = candidate
	}
	if h.at = rest.Offset; h.mode != modeFull {
		h.in.drop(h.at)
	}
	if rest.Length > 0 {
		h.gap(&rest)
	}
	return true
}

// parseCut returns the frame that ends within a gap.
func (h *half) parseCut(g *capture.Gap) *Startup {
	b := mpa.StartupFrame(h.buf)
	kind, _ := frameKind(b)
	if kind == 0 || kind == FrameStartKey || len(b) < mpa.StartupHeaderLen {
		return nil
	}
	size := mpa.StartupHeaderLen + int(b.PDLength())
	own := mpa.StartupHeaderLen
	if b.S() && b.Rev() >= 2 {
		own += mpa.EnhancedLen
	}
	if len(b) < min(own, size) || size > len(b)+int(g.Length) {
		return nil
	}
	f := &Startup{
		Frame: kind, Dir: h.dir, Offset: h.at, Size: size, Bytes: bytes.Clone(b), Cut: size - len(b), Last: g.Packet,
	}
	f.First, _ = h.in.stamps(h.at, h.at+uint64(len(b)))
	f.Fields = mpa.StartupFrame(f.Bytes)
	return f
}

// padded is the frame with zeros in place of what was cut off.
func (s *Startup) padded() []byte { return append(slices.Clip(s.Bytes), make([]byte, s.Cut)...) }

// shownKey is how much of a key shows by itself that there is one: as much as those of a Request and a Reply have
// in common.
const shownKey = 9

// named takes note of a key that is cut off.
func (h *half) named() {
	for _, k := range keys {
		if n := min(len(h.buf), len(k.key)); h.at == h.from && string(h.buf[:n]) == k.key[:n] {
			h.c.found()
			h.c.keyed = true
			return
		}
	}
}

// lacksStartup reports whether the startup may be in what the capture lacks of a connection.
func (c *conn) lacksStartup() bool {
	p := c.pub
	if p.Agreed || p.Midstream || p.Rejected || c.start.left != nil || c.start.wrong {
		return false
	}
	for d := range c.halves {
		if c.halves[d].broken || c.tcp.Halves[d].Midstream {
			return true
		}
	}
	return false
}

// notCaptured says that the startup is not in the capture.
func (c *conn) notCaptured() {
	h := &c.halves[capture.Forward]
	var lacks uint64
	for d := range c.halves {
		lacks += c.tcp.Halves[d].Count.Missing
	}
	text, advice := "the capture begins after the connection, and no FPDU was found in it", startupAdvice
	if c.tcp.OpenerKnown() {
		text = "no whole startup frame was found, and the capture lacks " +
			wording.Count(lacks, "byte") + " of the connection"
		advice = gapAdvice(capture.CauseLost)
		if c.d.totals.Cut > 0 {
			advice = gapAdvice(capture.CauseSnap)
		}
	}
	c.report(findNoStartup, h.dir, 0, c.tcp.First, text, advice)
}
