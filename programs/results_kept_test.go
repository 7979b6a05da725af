//go:build linux && interposer

package programs

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// encodeResults has a line for each result.
func encodeResults(t *testing.T, all []result) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, r := range all {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		testrig.Must(t, e.Encode(r))
		b.Write(bytes.TrimSpace(line.Bytes()))
		if i < len(all)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// wantResults wants results.json to have exactly these results of a test. Versions and outcomes may differ: the test
// says by itself what failed. With -update it writes them there.
func wantResults(t *testing.T, test string, got []result) {
	t.Helper()
	for i := range got {
		got[i].Test = test
		if got[i].Family == "" {
			got[i].Family = familyOf(got[i].Package)
		}
	}
	all := readResults(t)
	others := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return r.Test != test })
	if *update {
		all = slices.DeleteFunc(all, func(r result) bool { return r.Test == test })
		testrig.Must(t, os.WriteFile(resultsFile, encodeResults(t, append(all, got...)), 0o666))
		return
	}
	if !slices.EqualFunc(others, got, sameResult) {
		t.Errorf("%s has other results of %s than these; -update writes them:\n%s", resultsFile, test, encodeResults(t, got))
	}
}

// sameResult ignores what differs from run to run.
func sameResult(a, b result) bool {
	a.Outcome, b.Outcome = "", ""
	a.Package, _, _ = strings.Cut(a.Package, " ")
	b.Package, _, _ = strings.Cut(b.Package, " ")
	return a == b
}

func familyOf(pkg string) string {
	name, _, _ := strings.Cut(pkg, " ")
	for _, f := range families {
		if slices.Contains(strings.Fields(f.packages), name) {
			return f.name
		}
	}
	return ""
}
