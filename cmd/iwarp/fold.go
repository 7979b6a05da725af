package main

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goiwarp/iwarp/internal/wording"
)

// folded is w, whose lines go on below themselves where they are too long for a terminal. Elsewhere they stay whole.
func folded(w io.Writer) io.Writer {
	if columns := columnsBelow(w); columns > 0 {
		return &folder{to: w, columns: min(columns, widestScreen)}
	}
	return w
}

// A folder is told whole lines, several at a time.
type folder struct {
	to      io.Writer
	columns int
}

// Write folds each line.
func (f *folder) Write(b []byte) (int, error) {
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		f.fold(&out, strings.TrimSuffix(line, "\n"))
	}
	if _, err := io.WriteString(f.to, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *folder) fold(out *strings.Builder, line string) {
	if utf8.RuneCountInString(line) <= f.columns {
		out.WriteString(line + "\n")
		return
	}
	at := hanging(line, f.columns/2)
	head := line[:at]
	for part := range wording.Lines(line[at:], f.columns-utf8.RuneCountInString(head)) {
		out.WriteString(head + part + "\n")
		head = strings.Repeat(" ", utf8.RuneCountInString(line[:at]))
	}
}

// hanging is where the second column of a line begins, in bytes, if that is within most columns; else where its text does.
func hanging(line string, most int) int {
	text := len(line) - len(strings.TrimLeft(line, " "))
	if gap := strings.Index(line[text:], "  "); gap > 0 {
		second := text + gap
		second += len(line[second:]) - len(strings.TrimLeft(line[second:], " "))
		if utf8.RuneCountInString(line[:second]) <= most {
			return second
		}
	}
	return min(text, most)
}
