package decode_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// expected are the findings in captures of Linux's siw, and of this module, that are no
// notes; there are none in the others.
var expected = map[string][]string{
	"iwarp-terminate.pcap":    {"warning no-common-rtr", "warning terminate"},
	"siw-nfs3.pcap":           {"warning ulp-failure"},
	"siw-nfs4.pcap":           {"warning ulp-failure", "warning ulp-failure"},
	"siw-rping-p2p-none.pcap": {"warning no-rtr-kind", "warning no-common-rtr", "warning no-rtr"},
}

// TestCaptures decodes captures of real connections, and finds in them what is there.
func TestCaptures(t *testing.T) {
	for _, path := range testrig.Captures(t, testrig.Stored) {
		file, err := os.ReadFile(path)
		testrig.Must(t, err)
		r := run(t, file)
		if s := r.serious(); !slices.Equal(s, expected[filepath.Base(path)]) {
			t.Errorf("%s: %q", path, r.texts)
		}
		if len(r.conns) != 1 || len(r.startups) != 2 {
			t.Errorf("%s: %d connections, %q", path, len(r.conns), r.startups)
			continue
		}
		c := r.conns[0]
		for d := range c.Halves {
			if h := &c.Halves[d]; h.Bad+h.Cut+h.Lost > 0 || c.Agreed && h.FPDUs == 0 && d == 0 {
				t.Errorf("%s: %+v", path, h)
			}
		}
	}
}

// TestDocumented holds the names of findings against docs/decode-json.md.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/decode-json.md")
	testrig.Must(t, err)
	check := func(findings []string) {
		for _, f := range findings {
			if _, name, _ := strings.Cut(f, " "); !strings.Contains(string(doc), "| `"+name+"` |") {
				t.Errorf("%q is not documented", name)
			}
		}
	}
	for _, c := range startupCases {
		check(c.findings)
	}
	for _, c := range fullCases {
		check(c.findings)
	}
	for _, c := range openingCases {
		check(c.findings)
	}
	for _, c := range frameCases {
		check(c.findings)
	}
}
