package mpa

import (
	"strings"
	"testing"
)

// Private data that are a text are shown whole, and of others so many bytes.
func TestShownPart(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     int
	}{
		{"a text", strings.Repeat("a ", 100), 200},
		{"a text of all that can be printed", strings.Repeat(" ~", 40), 80},
		{"a control character", strings.Repeat("a", 100) + "\x1f", shownBytes},
		{"one above", strings.Repeat("a", 100) + "\x7f", shownBytes},
		{"no text, short", strings.Repeat("\x00", shownBytes-1), shownBytes - 1},
		{"no text, as long", strings.Repeat("\x00", shownBytes), shownBytes},
		{"no text, a byte longer", strings.Repeat("\x00", shownBytes+1), shownBytes},
	} {
		if got := shownPart([]byte(c.in)); string(got) != c.in[:c.want] {
			t.Errorf("%s: %d bytes, want %d", c.name, len(got), c.want)
		}
	}
}
