package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp/internal/terminal"
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
	if g, ok := w.(*terminal.Guard); ok {
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
	p.text(fmt.Sprintf("%3.0f%%%s  %v of %s: %s, %s",
		100*s.Done, remaining(s), s.Op, wording.Bytes(s.Size), s.Quantity, s.Transport))
}

// text shows a line in place of the last one.
func (p *progressLine) text(line string) {
	if p.w == nil {
		return
	}
	line = terminal.Escape(line)
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

// A copyLine is a progressLine that tells how far a copy is.
type copyLine struct {
	*progressLine
	what       string // is copied; empty: it goes without saying
	size, done int64
	began      time.Time
	told       time.Time // when it was shown last
}

// copyShow is how often it is shown at most.
const copyShow = 100 * time.Millisecond

// start is called before a copy of so many bytes.
func (l *copyLine) start(what string, size int64) {
	l.what, l.size, l.done, l.began, l.told = what, size, 0, time.Now(), time.Time{}
}

// moved is called when more bytes have been copied.
func (l *copyLine) moved(octets int64) {
	l.done += octets
	if now := time.Now(); now.Sub(l.told) >= copyShow {
		l.told = now
		l.text(howFar(l.done, l.size, now.Sub(l.began)) + l.what)
	}
}

// howFar says how much of a copy is done, and how long the rest takes.
func howFar(done, size int64, took time.Duration) string {
	rate := float64(done) / max(took.Seconds(), 1e-3)
	left := time.Duration(float64(size-done) / max(rate, 1) * float64(time.Second))
	return fmt.Sprintf("%3.0f%%  %.1f of %.1f MiB, %s, %v left",
		100*float64(done)/float64(max(size, 1)), mib(done), mib(size), rateText(done, took), left.Round(time.Second))
}

func mib(octets int64) float64 { return float64(octets) / (1 << 20) }

// rateText is how fast so many bytes were copied.
func rateText(octets int64, took time.Duration) string {
	return fmt.Sprintf("%.1f MiB/s", mib(octets)/max(took.Seconds(), 1e-3))
}

// wipe makes way for a line of another goroutine's.
func (p *progressLine) wipe() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// clear makes way for another line.
func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
