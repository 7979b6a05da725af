package conform_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/mpa"
)

// verdicts runs cases against a Responder whose application takes some private data only.
func verdicts(t *testing.T, takes func([]byte) bool, filter string) map[string]conform.Result {
	t.Helper()
	all := map[string]conform.Result{}
	setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581, takes: takes}.against(t,
		func(t *testing.T, o conform.Options) {
			o.Filter = regexp.MustCompile(filter)
			_, err := conform.Run(t.Context(), o, func(r *conform.Result) { all[r.Case.ID] = *r })
			if err != nil {
				t.Error(err)
			}
		})
	return all
}

// TestStrangePrivateData: an application that rejects private data that it does not know breaks no rule: what depends
// on them cannot be judged, and why is told. One that rejects some for their length, or how they come, is judged.
//
// Proves Q08, Q10.
func TestStrangePrivateData(t *testing.T) {
	none := func(data []byte) bool { return len(data) == 0 }
	judged := verdicts(t, none, "^startup/req-(whole|bytes|split-pd|pd-waits|pd-4|pd-257|pd-513)$")
	if len(judged) != 7 {
		t.Fatalf("%v", judged)
	}
	for id, r := range judged {
		want := conform.NotApplicable
		// without any of the ULP's, and with too much
		if id == "startup/req-whole" || id == "startup/req-pd-4" || id == "startup/req-pd-513" {
			want = conform.Pass
		}
		if r.Verdict != want || want == conform.NotApplicable &&
			!strings.Contains(r.Why, "rejects private data that it does not know") {
			t.Errorf("%s: %v, %s", id, r.Verdict, r.Why)
		}
	}
	short := func(data []byte) bool { return len(data) <= 128 }
	all := verdicts(t, short, "^startup/req-(bytes|pd-257)$")
	if all["startup/req-bytes"].Verdict != conform.Pass || all["startup/req-pd-257"].Verdict != conform.Fail {
		t.Errorf("%v", all)
	}
}
