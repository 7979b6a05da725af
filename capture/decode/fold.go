package decode

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goiwarp/iwarp/internal/wording"
)

// leastRoom is how much room text has, also on a terminal that is too narrow for it.
const leastRoom = 20

// put prints a text behind a head. On a terminal it goes on below itself, where it is too long.
func (t *Text) put(text, head string, args ...any) {
	columns := t.cfg.Columns
	if columns == 0 {
		fmt.Fprintf(t.w, head, args...)
		fmt.Fprintln(t.w, text)
		return
	}
	words := strings.TrimLeft(text, " ")
	head = fmt.Sprintf(head, args...) + text[:len(text)-len(words)]
	indent := utf8.RuneCountInString(head)
	if indent+utf8.RuneCountInString(words) <= columns {
		fmt.Fprintln(t.w, head+words)
		return
	}
	for line := range wording.Lines(words, max(columns-indent, leastRoom)) {
		fmt.Fprintln(t.w, head+line)
		head = strings.Repeat(" ", indent)
	}
}

// headings names on a terminal, once, what lines begin with.
func (t *Text) headings() {
	if t.cfg.Columns > 0 && !t.headed {
		fmt.Fprintf(t.w, "%-5s %8s %11s direction\n", "conn.", "packet", "seconds")
		t.headed = true
	}
}
