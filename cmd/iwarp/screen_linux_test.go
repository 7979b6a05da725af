package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/terminal"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// newTerminal opens a pseudoterminal of so many columns: what is written to one end is read at the other.
func newTerminal(t *testing.T, columns uint16) (program, people *os.File) {
	people, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { people.Close() })
	fd := int(people.Fd())
	testrig.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	testrig.Must(t, err)
	testrig.Must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { program.Close() })
	return program, people
}

// TestScreen: a terminal has colors unless it is told not to, and its own width, up to what is read at a glance.
func TestScreen(t *testing.T) {
	for _, test := range []struct {
		noColor, term string
		columns       uint16
		want          screen
	}{
		{"", "xterm", 120, screen{width: 96, color: true}},
		{"", "xterm", 80, screen{width: 80, color: true}},
		{"1", "xterm", 80, screen{width: 80}},
		{"", "dumb", 80, screen{width: 80}},
		{"", "xterm", 0, screen{width: 80, color: true}},
	} {
		t.Setenv("NO_COLOR", test.noColor)
		t.Setenv("TERM", test.term)
		program, _ := newTerminal(t, test.columns)
		if s := newScreen(terminal.NewGuard(program)); s.width != test.want.width || s.color != test.want.color {
			t.Errorf("%+v: %d columns, color %v", test, s.width, s.color)
		}
	}
	var pipe strings.Builder
	if s := newScreen(terminal.NewGuard(&pipe)); s.width != 96 || s.color {
		t.Errorf("of a pipe: %d columns, color %v", s.width, s.color)
	}
}

// TestDecodeOnTerminal decodes on a terminal: columns are headed once, and no line is longer than the terminal's.
func TestDecodeOnTerminal(t *testing.T) {
	program, people := newTerminal(t, 80)
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(people) // which fails when the other end is closed
		read <- string(text)
	}()
	guard := terminal.NewGuard(program)
	const file = "../../interop/testdata/captures/siw-rping.pcap"
	testrig.Must(t, execute(t.Context(), []string{"decode", "-v", file}, streams{guard, guard}))
	program.Close()
	text := <-read
	if strings.Count(text, "conn.   packet     seconds direction\r\n") != 1 {
		t.Errorf("no heading, or more: %s", text)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestPerfOnTerminal measures on a terminal: rows are whole and in color, what a peer has said is not obeyed, and the
// changing line is gone in the end.
func TestPerfOnTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	program, people := newTerminal(t, 80)
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(people) // which fails when the other end is closed
		read <- string(text)
	}()
	guard := terminal.NewGuard(program)
	args := strings.Fields("perf --processes 1 --duration 1ms --op send --size 64")
	testrig.Must(t, execute(t.Context(), args, streams{guard, guard}))
	program.Close()
	text := <-read
	for _, want := range []string{
		"\x1b[1miwarp perf   \x1b[0m", "\x1b[1mIn short  \x1b[0m", "\r\x1b[KSend of 64 B:  0%", "/s (iwarp)  ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	row, _, _ := strings.Cut(text[strings.LastIndex(text, "\r\x1b[K"):], "\r\n")
	if !strings.HasPrefix(row, "\r\x1b[KSend    64 B ") || strings.Contains(row, "%") {
		t.Errorf("the row is printed as %q", row)
	}
	if s := (screen{color: true}).paint(good, "\x1b[2J"); s != "\x1b[32m\\u001b[2J\x1b[0m" {
		t.Errorf("what would clear the screen is printed as %q", s)
	}
}
