package conform_test

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/mpa"
)

// A variant is our endpoint with one rule broken.
type variant struct {
	name     string
	rule     string // ID of the requirement
	caughtBy string // ID of the case
	setup    setup  // RFC 6581 if it has no dialect, Responder if it has no role
	// toPeer and fromPeer stand on the way to the endpoint and from it; nil passes.
	toPeer, fromPeer way
}

// variants returns all variants.
func variants() []variant {
	var all []variant
	for _, group := range [][]variant{
		responderVariants(), negotiatingResponders(), responderDialects(),
		initiatorVariants(), negotiatingInitiators(), initiatorDialects(),
		operationVariants(), rejectingVariants(), delayedVariants(),
	} {
		all = append(all, group...)
	}
	return all
}

func (v *variant) resolve() {
	if v.setup.role == 0 {
		v.setup.role = mpa.RoleResponder
	}
	if v.setup.dialect == 0 {
		v.setup.dialect = mpa.DialectRFC6581
	}
	if v.toPeer == nil {
		v.toPeer = pass
	}
	if v.fromPeer == nil {
		v.fromPeer = pass
	}
}

// TestVariants has every broken variant caught by the case that is meant for it,
// which the endpoint as it is passes over the same wire.
func TestVariants(t *testing.T) {
	cases := map[string]conform.Case{}
	for _, c := range conform.Cases() {
		cases[c.ID] = c
	}
	for _, v := range variants() {
		v.resolve()
		t.Run(v.name, func(t *testing.T) {
			c, ok := cases[v.caughtBy]
			if !ok {
				t.Fatalf("there is no case %s", v.caughtBy)
			}
			if !strings.Contains(" "+strings.Join(c.Requirements, " ")+" ", " "+v.rule+" ") {
				t.Errorf("case %s is about %v, not about %s", c.ID, c.Requirements, v.rule)
			}
			v.setup.between = between(v.toPeer, v.fromPeer)
			v.verdict(t, c, conform.Fail)
			v.setup.between = between(pass, pass)
			v.verdict(t, c, conform.Pass)
		})
	}
}

// verdict runs one case and compares the verdict.
func (v *variant) verdict(t *testing.T, c conform.Case, want conform.Verdict) {
	v.setup.against(t, func(t *testing.T, o conform.Options) {
		r, err := conform.RunCase(t.Context(), o, c)
		if err != nil || r.Verdict != want {
			var text strings.Builder
			conform.NewPrinter(&text, true).Result(&r)
			t.Errorf("want %v, got (%v)\n%s", want, err, &text)
		}
	})
}

// TestVariantsAreDistinct sees that each variant has a name and a rule of its own
// combination, and that there are enough of them.
func TestVariantsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range variants() {
		if seen[v.name] {
			t.Errorf("two variants %q", v.name)
		}
		seen[v.name] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d variants", len(seen))
	}
}
