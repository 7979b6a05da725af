package iwarp

import (
	"log/slog"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// TestNothingOfSIWAfterFallback: a peer that did not take revision 2 is not siw, and its silence is not told of.
func TestNothingOfSIWAfterFallback(t *testing.T) {
	rnic := NewRNIC(RNICConfig{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	qp := &QP{rnic: rnic}
	for fellBack, tells := range map[bool]bool{false: true, true: false} {
		n := Negotiated{FellBack: fellBack, Negotiated: mpa.Negotiated{Role: mpa.RoleInitiator,
			Dialect: mpa.DialectRFC5044, Revision: 1, PeerRevision: 1}}
		if nudge, tell := (&connecting{qp: qp, n: &n}).nudging(); nudge != 0 || (tell > 0) != tells {
			t.Errorf("fell back %t: nudges after %v, tells after %v", fellBack, nudge, tell)
		}
	}
}
