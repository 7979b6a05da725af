package probe_test

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/mpa"
)

// TestRejected: a responder that rejects shows its dialects all the same.
func TestRejected(t *testing.T) {
	t.Parallel()
	r := responder{reject: true}.probed(t, probe.Config{})
	if r.Revisions.One.Outcome != probe.Rejected || r.FirstFPDUs.Plain != nil || len(r.Dialects) < 2 ||
		r.Dialects[0] != mpa.DialectRFC6581 {
		t.Error(text(t, r))
	}
}

// TestRejectsAll: what a responder rejects with all other Requests shows nothing about markers, CRCs and revision 0.
func TestRejectsAll(t *testing.T) {
	t.Parallel()
	r := responder{reject: true}.probed(t, probe.Config{})
	s := text(t, r)
	for _, wrong := range []string{"rejects a Request that", "rejects revision 0"} {
		if strings.Contains(s, wrong) {
			t.Errorf("%q in: %s", wrong, s)
		}
	}
	if !strings.Contains(s, "not known, as it rejects all Requests") {
		t.Error(s)
	}
}
