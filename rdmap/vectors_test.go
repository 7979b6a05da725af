package rdmap

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vectors reads the annotated octets of testdata/name.hex, by vector name.
func vectors(t testing.TB, name string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	var current string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "vector "); ok {
			current = v
			continue
		}
		all[current] = append(all[current], octets(t, line)...)
	}
	delete(all, "")
	return all
}

// octets reads hex with any white space between the octets.
func octets(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
