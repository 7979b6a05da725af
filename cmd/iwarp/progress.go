package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/perf"
)

// A progressLine is a line on a terminal that is written over and over. On
// anything else it is nothing.
type progressLine struct {
	w     io.Writer // nil if not a terminal
	width int       // columns
	shown bool
}

func newProgressLine(w io.Writer) *progressLine {
	if g, ok := w.(*wording.Guard); ok {
		w = g.To()
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progressLine{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 {
		width = 80
	}
	return &progressLine{w: w, width: width}
}

func (p *progressLine) show(s perf.Progress) {
	p.text(fmt.Sprintf("%3.0f%%%s  %v of %s: %s, %s", 100*s.Done, remaining(s), s.Op, wording.Octets(s.Size), s.Quantity, s.Transport))
}

// text shows a line in place of the last one.
func (p *progressLine) text(line string) {
	if p.w == nil {
		return
	}
	line = wording.Escape(line)
	fmt.Fprint(p.w, "\r\x1b[K"+line[:min(len(line), p.width-1)])
	p.shown = true
}

// remaining estimates how long it still takes, once that can be told.
func remaining(s perf.Progress) string {
	if s.Done < 0.05 {
		return ""
	}
	left := time.Duration(float64(s.Elapsed) * (1 - s.Done) / s.Done)
	return fmt.Sprintf(", %.0f s left", left.Seconds())
}

// clear makes way for another line.
func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
