package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// folded is w, whose lines go on below themselves where they are too long for a terminal, and in a file for widestScreen.
func folded(w io.Writer) io.Writer {
	return &folder{to: w, columns: newScreen(w).width}
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
	at, indent := hanging(line, f.columns/2)
	head, text := line[:at], line[at:]
	for text != "" {
		part, rest := cut(text, f.columns-len(indent))
		out.WriteString(head + part + "\n")
		head, text = indent, rest
	}
}

// cut takes from a text what fits into so many columns, up to a space if there is one.
func cut(text string, columns int) (part, rest string) {
	if utf8.RuneCountInString(text) <= columns {
		return text, ""
	}
	end := 0
	for range columns {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	if space := strings.LastIndexByte(text[:end+1], ' '); space > 0 {
		end = space
	}
	return strings.TrimRight(text[:end], " "), strings.TrimLeft(text[end:], " ")
}

// hanging returns where the second column of a line begins, in bytes, if that is within most columns; else where its
// text does. What goes on below begins with indent.
func hanging(line string, most int) (at int, indent string) {
	text := len(line) - len(strings.TrimLeft(line, " "))
	at, deeper := min(text, most), 0
	if gap := strings.Index(line[text:], "  "); gap > 0 {
		second := text + gap
		second += len(line[second:]) - len(strings.TrimLeft(line[second:], " "))
		if utf8.RuneCountInString(line[:second]) <= most {
			at = second
		} else {
			deeper = min(4, most-at) // below its first column it would look like a line of its own
		}
	}
	return at, strings.Repeat(" ", utf8.RuneCountInString(line[:at])+deeper)
}
