package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFolder: a line that is too long goes on below its second column, or below where it begins.
func TestFolder(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"short", "short\n"},
		{"  name    one two three four five six", "  name    one two three\n          four five six\n"},
		{"  one two three four five six seven", "  one two three four five\n  six seven\n"},
		{"      µ    zwölf Boxkämpfer jagen Viktor", "      µ    zwölf\n           Boxkämpfer\n           jagen Viktor\n"},
		{"not found one/two  Q1  (for a reason)", "not found one/two  Q1\n    (for a reason)\n"},
		{strings.Repeat("x", 30), strings.Repeat("x", 25) + "\nxxxxx\n"},
	} {
		var out strings.Builder
		f := &folder{&out, 25}
		if n, err := f.Write([]byte(c.line + "\n")); n != len(c.line)+1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if out.String() != c.want {
			t.Errorf("%q:\n%s", c.line, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 25 {
				t.Errorf("too long: %q", line)
			}
		}
	}
}
