package mpa

import (
	"strings"
	"testing"
)

// Private data that are a text are shown whole, and of others so many octets.
func TestShownPart(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     int
	}{
		{"a text", strings.Repeat("a ", 100), 200},
		{"a text of all that can be printed", strings.Repeat(" ~", 40), 80},
		{"a control character", strings.Repeat("a", 100) + "\x1f", shownOctets},
		{"one above", strings.Repeat("a", 100) + "\x7f", shownOctets},
		{"no text, short", strings.Repeat("\x00", shownOctets-1), shownOctets - 1},
		{"no text, as long", strings.Repeat("\x00", shownOctets), shownOctets},
		{"no text, an octet longer", strings.Repeat("\x00", shownOctets+1), shownOctets},
	} {
		if got := shownPart([]byte(c.in)); string(got) != c.in[:c.want] {
			t.Errorf("%s: %d octets, want %d", c.name, len(got), c.want)
		}
	}
}
