package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/htmlpage"
	"github.com/goiwarp/iwarp/rdmap"
)

// firstFPDUs is how many FPDUs a ladder shows after a startup, unless both ends have
// sent one before.
const firstFPDUs = 4

// lastFPDUs is how many FPDUs it shows before the end of the connection.
const lastFPDUs = 6

// A ladder is what the two ends sent each other at the beginning and at the end.
type ladder struct {
	first   []step
	last    []step // the last FPDUs, and what does not fit in first any more
	dropped step   // the last step that is left out, if there is one
	begun   int    // FPDUs shown since the last frame
	spoken  [2]bool
}

// A step is an arrow of a ladder.
type step struct {
	dir         capture.Dir
	kind        string // tcp, startup, streaming, fpdu; rest is no arrow
	offset, end uint64 // stream offsets
	packet      capture.Stamp
	text        string
	closes      bool // a FIN or RST: it comes after the bytes in its packet
}

// add adds a step that is shown, as long as there is room.
func (l *ladder) add(s step) {
	if len(l.first) >= maxSteps {
		l.late(s, maxSteps)
		return
	}
	if s.kind == "startup" {
		l.begun, l.spoken = 0, [2]bool{}
	}
	l.first = append(l.first, s)
}

// late adds a step that is shown if it is among the last ones.
func (l *ladder) late(s step, room int) {
	l.last = append(l.last, s)
	if n := len(l.last) - room; n > 0 {
		l.dropped = l.last[n-1]
		l.dropped.kind, l.dropped.text = "rest", "and so on"
		l.last = slices.Delete(l.last, 0, n)
	}
}

// steps returns all steps in the order of packets.
func (l *ladder) steps() []step {
	steps := slices.Clone(l.first)
	if l.dropped.kind != "" {
		steps = append(steps, l.dropped)
	}
	steps = append(steps, l.last...)
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.packet.Number, b.packet.Number), order(a)-order(b))
	})
	return steps
}

// segment adds the packets that open and close a connection.
func (l *ladder) segment(s *decode.Segment) {
	if s.Flags&(capture.SYN|capture.FIN|capture.RST) == 0 {
		return
	}
	text := "TCP " + s.Flags.String()
	if s.Order == capture.OrderRepeat {
		text += ", sent again"
	}
	closes := s.Flags&capture.SYN == 0
	l.add(step{dir: s.Dir, kind: "tcp", offset: s.End(), end: s.End(), packet: s.Packet, text: text, closes: closes})
}

// fpdu adds the first FPDUs after a startup, every Terminate, those in error, and the last
// ones.
func (l *ladder) fpdu(f *decode.FPDU) {
	s := step{dir: f.Dir, kind: "fpdu", offset: f.Offset, end: f.End, packet: f.Last, text: f.String()}
	first := l.begun < firstFPDUs && !(l.spoken[0] && l.spoken[1])
	if !first && f.Err == nil && !(f.HasSegment && f.Op == rdmap.OpTerminate) {
		l.late(s, lastFPDUs)
		return
	}
	l.begun++
	l.spoken[f.Dir] = true
	l.add(s)
}

// ended adds how each direction has ended, where no packet says so.
func (l *ladder) ended(c *decode.Connection) {
	var last *capture.End
	for d := range c.Halves {
		e := &c.Halves[d].End
		if c.Halves[d].Ended && e.Reason != capture.EndFIN && e.Reason != capture.EndRST &&
			(last == nil || e.Packet.Number > last.Packet.Number) {
			last = e
		}
	}
	if last != nil {
		l.late(step{kind: "rest", packet: last.Packet,
			text: "this is the end of the connection in the capture: " + last.Reason.String(), closes: true}, maxSteps)
	}
}

// draw lays a ladder out, in the order of packets.
func (l *ladder) draw(c *decode.Connection) *htmlpage.Ladder {
	var steps []htmlpage.Step
	for _, s := range l.steps() {
		out := htmlpage.Step{Kind: s.kind, ToLeft: s.dir == capture.Backward, Text: s.text}
		if s.kind != "rest" {
			out.When = fmt.Sprintf("%s  #%d", elapsed(c, s.packet), s.packet.Number)
			out.Place = &htmlpage.Place{Dir: int(s.dir), Offset: s.offset, End: s.end}
		}
		steps = append(steps, out)
	}
	return htmlpage.NewLadder(ends(c), steps)
}

// order is that of steps in one packet.
func order(s step) int {
	if s.closes {
		return 1
	}
	return 0
}
