package mpa_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vector returns the octets of testdata/vectors/name.hex: hex digits in any
// grouping, with comments from # to the end of the line.
func vector(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "vectors", name+".hex"))
	if err != nil {
		tb.Fatal(err)
	}
	return unhex(tb, string(text))
}

func unhex(tb testing.TB, text string) []byte {
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

// vectors returns the names of all vectors that begin with a prefix.
func vectors(tb testing.TB, prefix string) (names []string) {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "vectors", prefix+"*.hex"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no vectors %q: %v", prefix, err)
	}
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(p), ".hex"))
	}
	return names
}
