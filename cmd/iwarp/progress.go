package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/terminal"
)

// A progressLine is a line on a terminal that is written over and over. On
// anything else it is nothing.
type progressLine struct {
	w     io.Writer // nil if not a terminal
	width int       // columns
	shown bool
}

// isTerminal reports whether people see what is written.
func isTerminal(w io.Writer) bool { return newProgressLine(w).w != nil }

func newProgressLine(w io.Writer) *progressLine {
	f := terminalOf(w)
	if f == nil || !obeys(f) {
		return &progressLine{}
	}
	return &progressLine{w: f, width: columnsOf(f)}
}

// there reports whether there is such a line.
func (p *progressLine) there() bool { return p.w != nil }

// text shows a line in place of the last one.
func (p *progressLine) text(line string) {
	if p.w == nil {
		return
	}
	runes := []rune(terminal.Escape(line))
	fmt.Fprint(p.w, "\r\x1b[K"+string(runes[:min(len(runes), p.width-1)]))
	p.shown = true
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
func (l *copyLine) moved(n int64) {
	l.done += n
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

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// rateText is how fast so many bytes were copied.
func rateText(n int64, took time.Duration) string {
	return fmt.Sprintf("%.1f MiB/s", mib(n)/max(took.Seconds(), 1e-3))
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

// A readLine reads a file, and tells on a terminal how far that is. Where what is found goes to a terminal, that is told
// in place of it.
type readLine struct {
	copyLine
	from io.Reader
}

// newReadLine returns one for what is read of a file by way of from.
func newReadLine(from, file io.Reader, std streams) *readLine {
	r := &readLine{copyLine: copyLine{progressLine: newProgressLine(std.err)}, from: from}
	if size, finite := sizeOf(file); finite && !isTerminal(std.out) {
		r.start("", size)
		r.told = r.began // what is over at once needs no line
		return r
	}
	r.progressLine = &progressLine{}
	return r
}

// sizeOf is the length of what is a file.
func sizeOf(r io.Reader) (size int64, is bool) {
	f, is := r.(*os.File)
	if !is {
		return 0, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// Read reads, and tells of it.
func (r *readLine) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.moved(int64(n))
	return n, err
}
