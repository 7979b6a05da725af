// Package testrig is what the tests of several packages have in common.
package testrig

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Bytes reads hex with any white space between the bytes, and comments that
// begin with # and end with the line.
func Bytes(tb testing.TB, text string) []byte {
	tb.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Vectors reads the annotated bytes of testdata/name.hex, by the name that a
// line "vector NAME" gives to what follows it.
func Vectors(tb testing.TB, name string) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	var current string
	for line := range strings.Lines(readHex(tb, name)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "vector "); ok {
			current, _, _ = strings.Cut(v, "#")
			current = strings.TrimSpace(current)
			continue
		}
		all[current] = append(all[current], Bytes(tb, line)...)
	}
	delete(all, "")
	return all
}

// Vector reads the annotated bytes of testdata/name.hex, which is one vector.
func Vector(tb testing.TB, name string) []byte {
	tb.Helper()
	return Bytes(tb, readHex(tb, name))
}

func readHex(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Numbered returns n bytes, none of them zero, which differ from their neighbors.
func Numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i%251) + 1
	}
	return b
}
