package conform_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
)

// sctpClient has rping -c of ours come to an address over SCTP, again and again.
func sctpClient(t *testing.T, addr string, plain bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cfg := rping.ClientConfig{Count: 1, Timeout: testrig.Soon, NoFallback: true,
			Dial: func(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error) {
				d.Network = new(iwarpsctp.Network)
				return d.Dial(ctx, "sctp4", addr)
			}}
		cfg.MPA.Timeout = testrig.Soon
		if plain {
			cfg.MPA.Dialect = mpa.DialectRFC5044
		}
		for ctx.Err() == nil {
			_ = rping.Client(ctx, addr, cfg) // the suite says what of it is wrong
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// activeOverSCTP are options for a peer that comes over SCTP, and where it has to come to.
func activeOverSCTP(t *testing.T) (o conform.Options, addr string) {
	t.Helper()
	l, err := conform.ListenSCTP(t.Context(), "127.0.0.1:0", nil, testrig.Soon)
	testrig.Must(t, err)
	t.Cleanup(func() { testrig.Should(t, l.Close()) })
	o = overSCTP("")
	o.Role, o.SCTPListener = mpa.RoleInitiator, l
	return o, l.Addr().String()
}

// TestSCTPActive has our endpoint pass every case as the one that asks for sessions.
//
// Proves C01, C02, C03, C04, C05, C06, C09, C10, C12, C14.
func TestSCTPActive(t *testing.T) {
	t.Parallel()
	var all []conform.Case
	for _, c := range conform.Cases() {
		if strings.HasPrefix(c.ID, "sctp/active-") {
			all = append(all, c)
		}
	}
	if len(all) < 25 {
		t.Errorf("%d cases", len(all))
	}
	crowd(t, all, func(c conform.Case) string { return c.ID }, func(t *testing.T, c conform.Case) {
		o, addr := activeOverSCTP(t)
		sctpClient(t, addr, false)
		wantVerdict(t, o, c, conform.Pass)
	})
}

// TestSCTPActiveRun runs cases one after the other with an endpoint that asks without RFC 6581, and comes by itself.
//
// Proves C04.
func TestSCTPActiveRun(t *testing.T) {
	t.Parallel()
	o, addr := activeOverSCTP(t)
	o.Filter = regexp.MustCompile("ready$|accept$|private-data$|reject$")
	sctpClient(t, addr, true)
	all, sum := collect(t, o)
	if sum.Passed != 3 || sum.NotApplicable != 1 || !sum.OK() {
		t.Errorf("%+v: %v", sum, all)
	}
}

// crowd runs subtests that mostly wait: many more at a time than there are processors.
func crowd[T any](t *testing.T, all []T, name func(T) string, run func(*testing.T, T)) {
	t.Helper()
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, 20)
	for _, each := range all {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			t.Run(name(each), func(t *testing.T) { run(t, each) })
		})
	}
}

func wantVerdict(t *testing.T, o conform.Options, c conform.Case, want conform.Verdict) {
	t.Helper()
	r, err := conform.RunCase(t.Context(), o, c)
	if err != nil || r.Verdict != want {
		var text strings.Builder
		conform.NewPrinter(&text, true).Result(&r)
		t.Errorf("want %v, got (%v)\n%s", want, err, &text)
	}
}

// TestSCTPActiveNobody tests where nobody comes, and roles that do not fit.
func TestSCTPActiveNobody(t *testing.T) {
	t.Parallel()
	l, err := conform.ListenSCTP(t.Context(), "127.0.0.1:0", nil, 20*time.Millisecond)
	testrig.Must(t, err)
	o := overSCTP("")
	o.Role, o.SCTPListener = mpa.RoleInitiator, l
	if _, sum := collect(t, o); sum.Inconclusive != 1 || sum.OK() ||
		!strings.HasPrefix(sum.Stopped, "the peer cannot be connected: ") || sum.Err == nil {
		t.Errorf("%+v", sum)
	}
	o.Role = mpa.RoleResponder
	if _, err := conform.Run(t.Context(), o, nil); err == nil {
		t.Error("a Responder that comes to us, and no error")
	}
	testrig.Must(t, l.Close())
}
