package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/rdmap"
)

// firstFPDUs is how many FPDUs a ladder shows behind a startup, unless both ends have
// sent one before.
const firstFPDUs = 4

// A ladder is what the two ends sent each other to begin with, and at the end.
type ladder struct {
	steps   []step
	omitted bool    // there are more steps, or FPDUs between
	begun   int     // FPDUs shown since the last frame
	spoken  [2]bool // an FPDU is shown of the direction
}

// A step is an arrow of a ladder.
type step struct {
	dir         capture.Dir
	kind        string // tcp, startup, streaming, fpdu; rest is no arrow
	offset, end uint64 // stream offsets
	packet      capture.Stamp
	text        string
	closes      bool // a FIN or RST: it comes behind the octets in its packet
}

func (l *ladder) add(s step) {
	if len(l.steps) >= maxSteps {
		l.omitted = true
		return
	}
	if s.kind == "startup" {
		l.begun, l.spoken = 0, [2]bool{}
	}
	l.steps = append(l.steps, s)
}

// rest says once that something is left out.
func (l *ladder) rest(p capture.Stamp) {
	if n := len(l.steps); n > 0 && l.steps[n-1].kind != "rest" {
		l.add(step{kind: "rest", packet: p})
	}
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

// fpdu adds the first FPDUs behind a startup, and every Terminate.
func (l *ladder) fpdu(f *decode.FPDU) {
	first := l.begun < firstFPDUs && !(l.spoken[0] && l.spoken[1])
	if !first && !(f.HasSegment && f.Op == rdmap.OpTerminate) {
		l.rest(f.First)
		return
	}
	l.begun++
	l.spoken[f.Dir] = true
	l.add(step{dir: f.Dir, kind: "fpdu", offset: f.Offset, end: f.End, packet: f.Last, text: f.String()})
}

// Measures of the drawing, in CSS pixels.
const (
	ladderWidth  = 1000
	lifelineLeft = 190
	lifelineRght = 970
	textLine     = 15
	textColumns  = 104 // characters between the lifelines
	textLines    = 6   // of a step at most
	stepSpace    = 16  // from one step's arrow to the next one's text
)

// A drawing is a ladder with its measures.
type drawing struct {
	Width, Height       int
	Left, Right, Middle int
	Top                 int
	Steps               []drawn
}

// A drawn is a step of a drawing.
type drawn struct {
	ID          int
	Dir         int
	Kind        string
	Offset, End uint64
	Packet      uint64
	Time        string
	Lines       []placed
	Y           int // of the arrow
	Top, Height int // of all of it
}

// Head returns the points of the arrow's head.
func (d drawn) Head() [3][2]int {
	x, back := lifelineRght, -10
	if d.Dir == int(capture.Backward) {
		x, back = lifelineLeft, 10
	}
	return [3][2]int{{x, d.Y}, {x + back, d.Y - 5}, {x + back, d.Y + 5}}
}

// Label returns the height of the text beside the arrow.
func (d drawn) Label() int { return d.Y + 4 }

// placed is a line of text and its height.
type placed struct {
	Text string
	Y    int
}

// draw lays a ladder out, in the order of packets.
func (l *ladder) draw(c *decode.Connection) drawing {
	steps := slices.Clone(l.steps)
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.packet.Number, b.packet.Number), order(a)-order(b))
	})
	d := drawing{Width: ladderWidth, Left: lifelineLeft, Right: lifelineRght, Middle: (lifelineLeft + lifelineRght) / 2, Top: 24}
	y := d.Top + 8
	for i, s := range steps {
		out := drawn{
			ID: i, Dir: int(s.dir), Kind: s.kind, Offset: s.offset, End: s.end, Packet: s.packet.Number,
			Time: seconds(c, s.packet), Top: y,
		}
		text := s.text
		if s.kind == "rest" {
			text = "and so on"
		}
		for _, line := range wrap(text) {
			y += textLine
			out.Lines = append(out.Lines, placed{line, y})
		}
		out.Y = y + 6
		y = out.Y + stepSpace
		out.Height = y - out.Top
		d.Steps = append(d.Steps, out)
	}
	d.Height = y
	return d
}

// order is that of steps in one packet.
func order(s step) int {
	if s.closes {
		return 1
	}
	return 0
}

// wrap cuts a text into lines, at blanks where there are any.
func wrap(text string) (lines []string) {
	for rest := []rune(text); len(rest) > 0; {
		if len(lines) == textLines {
			lines[textLines-1] += " ..."
			break
		}
		n := len(rest)
		if n > textColumns {
			n = textColumns
			for i := n; i > n/2; i-- {
				if rest[i] == ' ' {
					n = i
					break
				}
			}
		}
		lines = append(lines, strings.TrimSpace(string(rest[:n])))
		rest = rest[n:]
	}
	return lines
}
