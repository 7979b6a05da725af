package terminal

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// said are texts of peers, what Escape makes of them, and what a Guard does.
var said = []struct{ text, escaped, guarded string }{
	{"", "", ""},
	{`plain \ "text"`, `plain \ "text"`, `plain \ "text"`},
	{"grün µs 日本", "grün µs 日本", "grün µs 日本"},
	{"\x1b[2J\x1b]0;title\x07", `\u001b[2J\u001b]0;title\u0007`, `\u001b[2J\u001b]0;title\u0007`},
	{"one\ntwo\tthree\r", `one\u000atwo\u0009three\u000d`, "one\ntwo\tthree\\u000d"},
	{"\u009b31m", `\u009b31m`, `\u009b31m`},        // CSI in one character
	{"ab\u202edc", `ab\u202edc`, `ab\u202edc`},     // turns the line around
	{"\U000e0041", `\udb40\udc41`, `\udb40\udc41`}, // an invisible letter
	{"\x9b31m \xff \xe2\x82", `\x9b31m \xff \xe2\x82`, `\x9b31m \xff \xe2\x82`},
	{"\x7f", `\u007f`, `\u007f`},
}

func TestEscape(t *testing.T) {
	for _, c := range said {
		if got := Escape(c.text); got != c.escaped {
			t.Errorf("%q: got %q, want %q", c.text, got, c.escaped)
		}
	}
}

// TestGuardAtEveryCut divides each text at every byte: what comes out is the same.
func TestGuardAtEveryCut(t *testing.T) {
	for _, c := range said {
		for cut := range len(c.text) + 1 {
			var out bytes.Buffer
			g := NewGuard(&out)
			for _, part := range []string{c.text[:cut], c.text[cut:]} {
				if n, err := g.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("wrote %d of %d bytes (%v)", n, len(part), err)
				}
			}
			testrig.Must(t, g.Flush())
			if out.String() != c.guarded {
				t.Errorf("%q cut at %d: got %q, want %q", c.text, cut, &out, c.guarded)
			}
		}
	}
}

func TestGuardKeepsJSON(t *testing.T) {
	const text = "a\u009bb\u007fc\x1bd\U000e0041"
	b, err := json.Marshal(text)
	testrig.Must(t, err)
	var out bytes.Buffer
	if _, err := NewGuard(&out).Write(b); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != text {
		t.Errorf("%s: %q (%v)", &out, got, err)
	}
}

func FuzzEscape(f *testing.F) {
	for _, c := range said {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q: %q has %U", s, got, r)
			}
		}
		if again := Escape(got); again != got {
			t.Errorf("%q: escaped twice %q, once %q", s, again, got)
		}
	})
}
