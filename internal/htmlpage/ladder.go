package htmlpage

import "github.com/goiwarp/iwarp/internal/wording"

// A Step is a line of a ladder: mostly something that one end sends.
type Step struct {
	// Kind is its class in the style: startup, streaming and fpdu, or tcp for what the lower layer says. The others have no
	// arrow.
	Kind string
	// ToLeft: the right end sends it.
	ToLeft bool
	When   string // stands on its left
	Text   string
	// Place is for scripts, and may be nil.
	Place *Place
}

// A Place is where a step's bytes are in the streams.
type Place struct {
	Dir         int
	Offset, End uint64
}

// arrow reports whether the step is something that was sent.
func (s *Step) arrow() bool {
	switch s.Kind {
	case "startup", "streaming", "fpdu", "tcp":
		return true
	}
	return false
}

// Measures of the drawing, in CSS pixels.
const (
	width        = 1000
	lifelineLeft = 190
	lifelineRght = 970
	textLine     = 15
	textColumns  = 104 // characters between the lifelines
	textLines    = 6   // of a step at most
	arrowSpace   = 6   // from the text to its arrow
	stepSpace    = 16  // from one step's arrow to the next one's text
	restSpace    = 8   // from the text of one without an arrow
)

// A Ladder is steps between two ends, drawn.
type Ladder struct {
	Ends                [2]string
	Width, Height       int
	Left, Right, Middle int
	Top                 int
	Steps               []drawn
}

// A drawn is a step with its measures.
type drawn struct {
	Kind        string
	Place       *Place
	Lines       []placed
	When        *placed
	Arrow       *arrow
	Top, Height int // of all of it
}

// placed is a line of text and its height.
type placed struct {
	Text string
	Y    int
}

// An arrow goes from one lifeline to the other.
type arrow struct {
	Y    int
	Head [3][2]int // the points of its head
}

func newArrow(y int, toLeft bool) *arrow {
	x, back := lifelineRght, -10
	if toLeft {
		x, back = lifelineLeft, 10
	}
	return &arrow{y, [3][2]int{{x, y}, {x + back, y - 5}, {x + back, y + 5}}}
}

// NewLadder lays steps out, in their order.
func NewLadder(ends [2]string, steps []Step) *Ladder {
	l := &Ladder{Ends: ends, Width: width, Left: lifelineLeft, Right: lifelineRght,
		Middle: (lifelineLeft + lifelineRght) / 2, Top: 24}
	y := l.Top + 8
	for i := range steps {
		l.Steps = append(l.Steps, steps[i].draw(y))
		y += l.Steps[i].Height
	}
	l.Height = y
	return l
}

// draw lays a step out, from a height on.
func (s *Step) draw(y int) drawn {
	d := drawn{Kind: s.Kind, Place: s.Place, Top: y}
	for _, line := range wrap(s.Text) {
		y += textLine
		d.Lines = append(d.Lines, placed{line, y})
	}
	label, space := y, restSpace
	if s.arrow() {
		d.Arrow = newArrow(y+arrowSpace, s.ToLeft)
		label, space = y+arrowSpace+4, arrowSpace+stepSpace
	}
	if s.When != "" {
		d.When = &placed{s.When, label}
	}
	d.Height = y + space - d.Top
	return d
}

// wrap cuts a text into the lines that a step has room for.
func wrap(text string) (lines []string) {
	for line := range wording.Lines(text, textColumns) {
		if len(lines) == textLines {
			lines[textLines-1] += " ..."
			break
		}
		lines = append(lines, line)
	}
	return lines
}
