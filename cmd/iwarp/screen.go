package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp/internal/terminal"
)

// widestScreen is how many columns text has at most, also on a wider terminal: it is to be read, and pasted.
const widestScreen = 96

// A screen is where text for people goes, in color on a terminal that shows it.
type screen struct {
	io.Writer
	width int // columns
	color bool
}

func newScreen(w io.Writer) screen {
	f := terminalOf(w)
	if f == nil {
		return screen{Writer: w, width: widestScreen}
	}
	s := screen{Writer: w, width: min(columnsOf(f), widestScreen)}
	if guard, ok := w.(*terminal.Guard); ok && os.Getenv("NO_COLOR") == "" && obeys(f) {
		s.Writer, s.color = guard.Trusted(), true
	}
	return s
}

// A style is how a terminal shows text: the parameter of ECMA-48's SGR.
type style string

// The styles, by what they say.
const (
	usual   style = ""
	heading style = "1"
	quiet   style = "2"
	good    style = "32"
	bad     style = "33"
	ours    style = "36"
)

// paint returns a text in a style. What a terminal would obey in it is escaped.
func (s screen) paint(as style, text string) string {
	text = terminal.Escape(text)
	if !s.color || as == usual || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// terminalOf returns the terminal that a writer leads to, or nil.
func terminalOf(w io.Writer) *os.File {
	if g, ok := w.(*terminal.Guard); ok {
		w = g.To()
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// columnsBelow is how wide the terminal is that a writer leads to, and 0 where there is none: there lines stay whole.
func columnsBelow(w io.Writer) int {
	if f := terminalOf(w); f != nil {
		return columnsOf(f)
	}
	return 0
}

// columnsOf is how wide a terminal is: 80 columns if it does not tell.
func columnsOf(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}
