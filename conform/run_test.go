package conform_test

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// collect runs the selected cases and returns their results by ID.
func collect(t *testing.T, o conform.Options) (map[string]conform.Result, conform.Summary) {
	t.Helper()
	all := map[string]conform.Result{}
	sum, err := conform.Run(t.Context(), o, func(r *conform.Result) { all[r.Case.ID] = *r })
	testrig.Must(t, err)
	return all, sum
}

// against runs a test against an endpoint of ours, in virtual time.
func (c setup) against(t *testing.T, test func(t *testing.T, o conform.Options)) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := c.peer(t)
		defer stop()
		test(t, c.options(p))
	})
}

// TestCases holds the catalog to its own rules.
func TestCases(t *testing.T) {
	id := regexp.MustCompile(`^[a-z0-9]+/[a-z0-9-]+$`)
	requirement := regexp.MustCompile(`^[A-Z][0-9]{2}$`)
	seen := map[string]bool{}
	for _, c := range conform.Cases() {
		switch {
		case !id.MatchString(c.ID):
			t.Errorf("ID %q", c.ID)
		case seen[c.ID]:
			t.Errorf("two cases %s", c.ID)
		case len(c.Requirements) == 0 || slices.ContainsFunc(c.Requirements,
			func(r string) bool { return !requirement.MatchString(r) }):
			t.Errorf("%s: requirements %v", c.ID, c.Requirements)
		case c.Section == "":
			t.Errorf("%s: no section", c.ID)
		case !strings.HasSuffix(c.Text, ".") || strings.Contains(c.Text, "\n"):
			t.Errorf("%s: text %q", c.ID, c.Text)
		case c.Role != mpa.RoleInitiator && c.Role != mpa.RoleResponder:
			t.Errorf("%s: %v", c.ID, c.Role)
		}
		seen[c.ID] = true
	}
	if len(seen) < 150 {
		t.Errorf("%d cases", len(seen))
	}
}

// TestDepthsInWords: the sentences of cases about depths have numbers as people read them.
func TestDepthsInWords(t *testing.T) {
	for id, want := range map[string]string{
		"negotiate/req-depth-3ffe":     "IRD 16382 and ORD 16382",
		"negotiate/req-depth-8":        "IRD 8 and ORD 8",
		"negotiate/req-depth-ird-3fff": "IRD 0x3FFF and ORD 8",
	} {
		if got := caseOf(t, id).Text; !strings.Contains(got, want) {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// TestHeld leaves out what was not asked for, and says so.
func TestHeld(t *testing.T) {
	setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
		all, sum := collect(t, conform.Options{Role: o.Role, Peer: o.Peer})
		for id, why := range map[string]string{
			"startup/req-silent": "slow, not asked for",
			"startup/req-fin":    "unsafe, not asked for: it closes the connection",
			"rtr/req-message":    "application has to be rping",
		} {
			if r := all[id]; r.Verdict != conform.NotApplicable ||
				!strings.Contains(r.Why, why) || len(r.Dialogue) > 0 {
				t.Errorf("%s: %v (%s)", id, r.Verdict, r.Why)
			}
		}
		if sum.Failed+sum.Inconclusive > 0 || sum.Passed < 80 {
			t.Errorf("%v", &sum)
		}
	})
}

// TestFilter runs what an expression selects.
func TestFilter(t *testing.T) {
	setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
		o.Filter = regexp.MustCompile("^startup/req-res-[1-8]$")
		if all, sum := collect(t, o); len(all) != 4 || sum.Passed != 4 {
			t.Errorf("%d cases, %v", len(all), &sum)
		}
	})
}

// caseOf returns the case with an ID.
func caseOf(t *testing.T, id string) conform.Case {
	t.Helper()
	cases, err := conform.Options{Filter: regexp.MustCompile("^" + id + "$")}.Selected()
	testrig.Must(t, err)
	return cases[0]
}

// TestNoCases refuses a filter that takes no case, and says whether it is the filter.
func TestNoCases(t *testing.T) {
	for _, c := range []struct{ filter, want string }{
		{"^startup/rek-", "no case has an ID that matches"},
		{"^startup/rep-whole$", "1 case with an ID that matches"},
	} {
		o := conform.Options{Role: mpa.RoleResponder, Peer: new(notConnected), Filter: regexp.MustCompile(c.filter)}
		sum, err := conform.Run(t.Context(), o, nil)
		var e *conform.NoCasesError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(sum, conform.Summary{}) {
			t.Errorf("%s: got %v, want %q", c.filter, err, c.want)
		}
		if o.Peer.(*notConnected).asked > 0 {
			t.Errorf("%s: the peer was connected", c.filter)
		}
	}
}

// TestNothingTested has no case that applies: the run says that it has found out nothing, and why, if that is one
// thing.
func TestNothingTested(t *testing.T) {
	for filter, want := range map[string]string{
		"^ddp/":           "nothing was tested, as no case applies: beyond the startup, and the peer's application is not known",
		"^(ddp|delayed)/": "nothing was tested, as no case applies",
	} {
		setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
			o.App, o.Filter = conform.AppNone, regexp.MustCompile(filter)
			if all, sum := collect(t, o); len(all) == 0 || sum.NotApplicable != len(all) ||
				sum.Stopped != want || sum.OK() {
				t.Errorf("%s: %v, stopped: %q", filter, &sum, sum.Stopped)
			}
		})
	}
}

// TestInterrupted ends a run with its context.
func TestInterrupted(t *testing.T) {
	setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		sum, err := conform.Run(ctx, o, func(*conform.Result) {
			if done++; done == 5 {
				cancel()
			}
		})
		if err != nil || done != 5 || sum.Stopped != "interrupted" || !sum.Interrupted || sum.OK() {
			t.Errorf("%d results, %v, %v", done, &sum, err)
		}
	})
}

// TestInterruptedWithin ends a run within a case whose connection is up, which is parted from in order all the same.
func TestInterruptedWithin(t *testing.T) {
	for after := 100 * time.Millisecond; after < 2*time.Second; after += 100 * time.Millisecond {
		setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			o.Filter = regexp.MustCompile("startup/req-(split|bytes|waits)")
			all, err := o.Selected()
			testrig.Must(t, err)
			done := 0
			if sum, err := conform.Run(ctx, o, func(*conform.Result) { done++ }); err != nil ||
				done < len(all) != (sum.Stopped == "interrupted") {
				t.Errorf("%d of %d, %v, %v", done, len(all), &sum, err)
			}
		})
	}
}

// TestOptions refuses what cannot be run.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    conform.Options
		text string
	}{
		{conform.Options{Role: mpa.RoleResponder}, "no peer"},
		{conform.Options{Peer: new(notConnected)}, "role"},
		{conform.Options{Role: mpa.RoleResponder, Peer: new(notConnected), Quiet: -1}, "negative"},
	} {
		if _, err := conform.Run(t.Context(), c.o, nil); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %q", err, c.text)
		}
	}
}

// TestSetupIsInconclusive tells a rule that is broken from one that was not come to.
func TestSetupIsInconclusive(t *testing.T) {
	shuts := setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581, between: between(shut, pass)}
	shuts.against(t, func(t *testing.T, o conform.Options) {
		r, err := conform.RunCase(t.Context(), o, caseOf(t, "rdmap/responder-reads"))
		if err != nil || r.Verdict != conform.Inconclusive || !strings.Contains(r.Why, "expected an accepting Reply") {
			t.Errorf("%v (%s), %v", r.Verdict, r.Why, err)
		}
	})
}

// TestNotRunnable has what cannot be run be an error, and not a panic.
func TestNotRunnable(t *testing.T) {
	overTCP := conform.Options{Role: mpa.RoleResponder, Peer: &conform.DialPeer{Addr: "127.0.0.1:1"}}
	overSCTP := conform.Options{Role: mpa.RoleResponder, SCTP: "127.0.0.1:1"}
	for _, c := range []struct {
		opts  conform.Options
		c     conform.Case
		words string
	}{
		{overTCP, conform.Case{ID: "mine/x"}, `"mine/x" has no dialogue`},
		{overTCP, caseOf(t, "sctp/streams"), "set Options.Peer for one over TCP, Options.SCTP"},
		{overSCTP, caseOf(t, "startup/req-whole"), "set Options.Peer for one over TCP, Options.SCTP"},
		{conform.Options{Role: mpa.RoleResponder}, caseOf(t, "startup/req-whole"),
			"set Options.Peer for one over TCP, Options.SCTP"},
	} {
		if _, err := conform.RunCase(t.Context(), c.opts, c.c); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", c.c.ID, err)
		}
	}
	overTCP.Filter = regexp.MustCompile("^startup/req-whole$")
	if sum, err := conform.Run(t.Context(), overTCP, nil); err != nil || sum.Err == nil {
		t.Error(sum, err)
	}
}
