//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A conformRun is a run of the suite's safe cases against rdma-core's rping over the
// unchanged driver.
type conformRun struct {
	file    string // its records
	role    mpa.Role
	dialect mpa.Dialect
}

var conformRuns = []conformRun{
	{"testdata/siw-conform/responder-rfc6581.jsonl", mpa.RoleResponder, mpa.DialectRFC6581},
	{"testdata/siw-conform/responder-rfc5044.jsonl", mpa.RoleResponder, mpa.DialectRFC5044},
	{"testdata/siw-conform/initiator-rfc6581.jsonl", mpa.RoleInitiator, mpa.DialectRFC6581},
}

// TestConformSiw runs iwarp conform's safe cases, in both roles: the guest's kernel
// survives each, and what siw passes and fails, and why, is as recorded in
// testdata/siw-conform, which -update writes.
func TestConformSiw(t *testing.T) {
	results := make([][]conform.Result, len(conformRuns))
	t.Run("runs", func(t *testing.T) {
		for i := range conformRuns {
			t.Run(path.Base(conformRuns[i].file), func(t *testing.T) {
				t.Parallel()
				results[i] = conformRuns[i].try(t, Options{})
			})
		}
	})
	if !*update || t.Failed() || slices.ContainsFunc(results, func(of []conform.Result) bool { return len(of) == 0 }) {
		return // without a part of them
	}
	for i := range conformRuns {
		writeConformRecords(t, conformRuns[i].file, results[i])
	}
}

// TestConformSiwUserTCP runs them over our TCP in user space: the same comes of each.
func TestConformSiwUserTCP(t *testing.T) {
	for i := range conformRuns {
		t.Run(path.Base(conformRuns[i].file), func(t *testing.T) {
			t.Parallel()
			conformRuns[i].try(t, Options{UserTCP: true})
		})
	}
}

// try runs all cases and returns their results. Where the guest's kernel does not survive
// they are all run once more, in another guest: siw has races that no case is about, and
// a case that is to blame does it again.
func (c *conformRun) try(t *testing.T, o Options) (results []conform.Result) {
	survived := false
	for _, name := range []string{"guest", "another-guest"} {
		if !survived {
			t.Run(name, func(t *testing.T) { results, survived = c.run(t, o, name != "guest") })
		}
	}
	return results
}

// run runs all cases in a guest. It reports whether the guest has survived, which it
// must the last time.
func (c *conformRun) run(t *testing.T, o Options, last bool) (results []conform.Result, survived bool) {
	g := Boot(t, o)
	k := conformCheck{Guest: g, file: c.file, recorded: readConformRecords(t, c.file)}
	k.opts = conform.Options{Role: c.role, Dialect: c.dialect, App: conform.AppRping, Timeout: conformTimeout}
	k.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sum, err := conform.Run(ctx, k.opts, func(r *conform.Result) {
		if !k.compare(ctx, t, r) {
			cancel()
		}
	})
	if k.harmed != "" {
		t.Log(k.harmed)
		g.expendable = !last
		return nil, last
	}
	if err != nil || sum.Stopped != "" {
		t.Fatalf("the run is not complete: %v %s", err, sum.Stopped)
	}
	t.Log(&sum)
	k.wantAll(t)
	return k.results, true
}

// A conformCheck takes the results of a run.
type conformCheck struct {
	*Guest
	opts     conform.Options
	file     string // of the records
	recorded map[string]conformRecord
	results  []conform.Result
	server   *Proc
	harmed   string // what the guest's kernel has reported, and in which case
}

// start starts rping in the guest anew, or is ready to.
func (k *conformCheck) start(t *testing.T) {
	t.Helper()
	switch {
	case k.opts.Role == mpa.RoleInitiator && k.opts.Peer == nil:
		k.opts.Peer = listenForGuest(t, k.Guest)
	case k.opts.Role == mpa.RoleResponder:
		if k.server != nil {
			k.server.Stop(t)
		}
		k.server = k.Serve(t, "rping -s -P >/dev/null 2>&1")
		k.opts.Peer = &conform.DialPeer{Addr: k.Guest.server(), Timeout: conformTimeout, Dial: k.dialTo}
	}
}

// conformTries is how often a case is run again, by itself, whose result is another than
// recorded: on a busy machine a peer may be late, and rping -s -P may lose a connection
// that follows another closely.
const conformTries = 3

// conformVaries are cases of which siw passes some runs and fails others, and why. Where
// none of the tries passes, the result is not compared.
var conformVaries = map[string]string{
	"startup/req-bytes": "on a busy machine its worker may miss the last of many segments, and it never answers",
}

// conformTimeout leaves a busy machine time, as siw's kernel does not always survive
// that a Request is given up.
const conformTimeout = 5 * time.Second

// compare compares a result with the recorded one. It returns false if the guest's kernel has
// not survived.
func (k *conformCheck) compare(ctx context.Context, t *testing.T, r *conform.Result) bool {
	t.Helper()
	final := *r
	for try := 0; k.mayVary(&final) && try < conformTries; try++ {
		t.Logf("differs, and is tried again:\n%s", dialogue(&final))
		k.start(t)
		again, err := conform.RunCase(ctx, k.opts, r.Case)
		testrig.Must(t, err)
		final = again
	}
	k.results = append(k.results, final)
	if harm := k.harm(); harm != "" {
		k.harmed = fmt.Sprintf("the guest's kernel reports %q in, or before:\n%s", harm, dialogue(&final))
		return false
	}
	switch why := conformVaries[r.Case.ID]; {
	case k.asRecorded(&final) || *update:
	case why != "":
		t.Logf("%s is known to vary: %s", r.Case.ID, why)
	case k.judgedAsRecorded(&final): // in other words, as timing has it
		t.Logf("%s has other words for this:\n%+v", k.file, recordOf(&final))
	default:
		t.Errorf("%s does not have this (see -update):\n%+v\n%s", k.file, recordOf(&final), dialogue(&final))
	}
	return true
}

// wantAll: every case that is recorded was run.
func (k *conformCheck) wantAll(t *testing.T) {
	t.Helper()
	for _, r := range k.results {
		delete(k.recorded, r.Case.ID)
	}
	for id := range k.recorded {
		if !*update {
			t.Errorf("%s has %s, which is no case (see -update)", k.file, id)
		}
	}
}

// mayVary reports whether a case ended otherwise than it once did. One that is unsafe was
// not run, and must not be.
func (k *conformCheck) mayVary(r *conform.Result) bool {
	_, known := k.recorded[r.Case.ID]
	return known && !k.judgedAsRecorded(r) && len(r.Dialogue) > 0 && r.Case.Unsafe == ""
}

func dialogue(r *conform.Result) string {
	var b strings.Builder
	conform.NewPrinter(&b, true).Result(r)
	return b.String()
}
