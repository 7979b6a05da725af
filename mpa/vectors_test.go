package mpa_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// vector returns the bytes of testdata/vectors/name.hex: hex digits in any
// grouping, with comments from # to the end of the line.
func vector(tb testing.TB, name string) []byte {
	tb.Helper()
	return testrig.Vector(tb, filepath.Join("vectors", name))
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
