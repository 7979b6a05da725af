package conform_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// roles of the peer under test.
var roles = []mpa.Role{mpa.RoleResponder, mpa.RoleInitiator}

// options of a run against our endpoint, with everything switched on.
func (c setup) options(p conform.Peer) conform.Options {
	o := conform.Options{Role: c.role, Dialect: c.dialect, App: conform.AppRping, Peer: p, Unsafe: true, Slow: true}
	if c.rejects {
		o.App = conform.AppReject
	}
	if c.delayed {
		o.Streaming = &streaming
	}
	return o
}

// TestEndpoint runs every case of the startup in every dialect against our own
// endpoint, which passes all that concern it. Without IWARP_ALL most offers are made in one
// dialect only.
//
// Proves Q01, Q02, Q04, Q05, Q06, Q07, Q08, Q09, Q10, Q11, Q12, Q13, Q15, E01, E02, E03, E04,
// E05, E06, E07, E08, E09, E10, E13, E14, F04, F07, F08, F11, F14, K01, K02, K03, K04, K05,
// T01, T02, T03, T04, T05, N02, N03, N04, N05, D23, P26.
func TestEndpoint(t *testing.T) {
	for _, c := range []struct {
		name    string
		offer   mpa.Offer
		excused string // what does not concern it
	}{
		{"default", mpa.Offer{}, "^rtr/rep-a0$"},
		{"markers", mpa.Offer{Markers: true}, "^rtr/rep-a0$|^startup/req-pipelined$"},
		{"no CRC", mpa.Offer{NoCRC: true}, "^rtr/rep-a0$"},
		{"client-server", mpa.Offer{ClientServer: true}, "^rtr/rep-"},
		{"RTR Send", mpa.Offer{RTR: mpa.RTRSend}, "^rtr/(rep-a0|req-write|req-write-stag-0|req-at-once|req-read)$"},
		{"RTR Read", mpa.Offer{RTR: mpa.RTRRead}, "^rtr/(rep-a0|req-write|req-write-stag-0|req-at-once|req-send)$|^negotiate/rep-ird-0$"},
		{"private data", mpa.Offer{PrivateData: []byte("hello"), IRD: 8, ORD: 8}, "^rtr/rep-a0$"},
	} {
		everywhere(t, setup{offer: c.offer}, c.name+"/", func(t *testing.T, s setup) {
			if c.name != "default" && s.dialect != mpa.DialectRFC6581 && !testrig.Everything() {
				t.SkipNow()
			}
			if s.dialect == mpa.DialectStartKey {
				s.offer.PrivateData = nil // there is no room for it
			}
			s.passes(t, startupCases, regexp.MustCompile(c.excused))
		})
	}
}

// TestRejecting runs the cases of a Responder that rejects every Request, in every
// dialect with frames.
//
// Proves Q05, Q10, E08.
func TestRejecting(t *testing.T) {
	for _, dialect := range mpa.Dialects() {
		if dialect == mpa.DialectStartKey {
			continue // it has no rejecting Reply
		}
		s := setup{role: mpa.RoleResponder, dialect: dialect, rejects: true}
		t.Run(name(s), func(t *testing.T) {
			s.passes(t, regexp.MustCompile("^reject/"), none)
		})
	}
}

// TestDelayed runs the cases of a startup that follows streaming data in both roles and
// every dialect, and all other cases of the startup after such data, too.
//
// Proves Q13, Q14, K06.
func TestDelayed(t *testing.T) {
	everywhere(t, setup{delayed: true}, "", func(t *testing.T, s setup) {
		s.passes(t, regexp.MustCompile("^delayed/"), none)
		s.passes(t, startupCases, regexp.MustCompile("^rtr/rep-a0$|^reject/"))
	})
}

// none excuses no case.
var none = regexp.MustCompile("^$")

func name(c setup) string {
	d, _ := c.dialect.MarshalText()
	return fmt.Sprintf("%s/%s", strings.ToLower(c.role.String()), d)
}

// startupCases are those of the startup.
var startupCases = regexp.MustCompile("^(startup|negotiate|rtr|fallback|rtr2007|revision0|startkey)/")

// passes runs the cases that the filter takes of a role and dialect.
func (c setup) passes(t *testing.T, filter, excused *regexp.Regexp) {
	c.against(t, func(t *testing.T, o conform.Options) {
		o.Filter = filter
		sum, err := conform.Run(t.Context(), o, func(r *conform.Result) {
			if r.Verdict == conform.Pass || r.Verdict == conform.NotApplicable && excused.MatchString(r.Case.ID) {
				return
			}
			var text strings.Builder
			conform.NewPrinter(&text, true).Result(r)
			t.Error(text.String())
		})
		if err != nil || !sum.OK() || sum.Passed == 0 {
			t.Errorf("%v: %v", &sum, err)
		}
	})
}

// everywhere runs a test of an endpoint of ours in both roles and every dialect.
func everywhere(t *testing.T, base setup, prefix string, test func(t *testing.T, s setup)) {
	for _, role := range roles {
		for _, dialect := range mpa.Dialects() {
			s := base
			s.role, s.dialect = role, dialect
			t.Run(prefix+name(s), func(t *testing.T) { test(t, s) })
		}
	}
}
