//go:build interop

package interop_test

import (
	"context"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/mpa"
)

// TestUserTCP has siw meet our TCP in user space, where our endpoint meets it over the host's: one guest serves it all,
// whose second network card is the link of a usertcp.Stack in this process. TestAcceptRace and TestConformSiwUserTCP
// have guests of their own for it. TestTap is about the host's packets.
func TestUserTCP(t *testing.T) {
	t.Parallel()
	r := bootSiwRig(t, Options{UserTCP: true, Put: rstream})
	for _, c := range []struct {
		table string
		try   siwTry
	}{
		{"parameters, siw as Responder", (*siwRig).toGuest},
		{"parameters, siw as Initiator", (*siwRig).fromGuest},
		{"dialects, siw as Responder", (*siwRig).toGuest},
		{"dialects, siw as Initiator", (*siwRig).fromGuest},
	} {
		t.Run(c.table, func(t *testing.T) { r.try(t, c.table, c.try) })
	}
	r.Set(t, commas(siwConstants))
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Guest)
	}{
		{"RpingToGuest", rpingToGuest},
		{"RpingFromGuest", rpingFromGuest},
		{"PrivateDataToGuest", privateDataToGuest},
		{"PrivateDataFromGuest", privateDataFromGuest},
		{"Closes", func(t *testing.T, g *Guest) { closes(t, g, 2) }},
		{"SendEarly", sendEarly},
		{"Stream", streams},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, r.Guest) })
	}
	t.Run("Probe", func(t *testing.T) {
		r.Serve(t, "rping -s -P")
		r.wantProbed(t, true)
	})
}

// An rpingHere is rping in this process, told by the flags of the command.
type rpingHere struct {
	size, count int
	validate    bool
	persistent  bool
	revision    int
	data        string
	reject      *string
}

func parseRping(t testing.TB, flags string) (r rpingHere) {
	t.Helper()
	f := flag.NewFlagSet("rping", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&r.size, "S", 0, "")
	f.IntVar(&r.count, "C", 0, "")
	f.BoolVar(&r.validate, "V", false, "")
	f.BoolVar(&r.persistent, "P", false, "")
	f.Bool("v", true, "")
	f.Bool("d", true, "")
	f.String("peer", "", "") // which dialNudging does here
	f.IntVar(&r.revision, "mpa-rev", 2, "")
	f.StringVar(&r.data, "private-data", "", "")
	f.Func("reject", "", func(s string) error { r.reject = &s; return nil })
	if err := f.Parse(strings.Fields(flags)); err != nil {
		t.Fatalf("rping %s: %v", flags, err)
	}
	return r
}

func (r *rpingHere) config(p *Proc) rping.Config {
	offer := mpa.Offer{PrivateData: []byte(r.data)}
	if r.revision == 1 {
		offer.Dialect = mpa.DialectRFC5044
	}
	return rping.Config{Validate: r.validate, MPA: offer, Watch: p.printEvent}
}

// rpingHereTo starts a client of the guest's server.
func rpingHereTo(t testing.TB, g *Guest, flags string) *Proc {
	t.Helper()
	r := parseRping(t, flags)
	return inProcess(t, "rping "+flags, func(ctx context.Context, p *Proc) error {
		return rping.Client(ctx, g.server(), rping.ClientConfig{Config: r.config(p), Size: r.size,
			Count: r.count, Dial: g.dialNudging})
	})
}

// rpingServerHere starts a server.
func rpingServerHere(t testing.TB, g *Guest, flags string) (p *Proc, port string) {
	t.Helper()
	r := parseRping(t, flags)
	config := func(*Proc) iwarp.ListenConfig { return iwarp.ListenConfig{} }
	return serveHere(t, g, "rping "+flags, config, func(ctx context.Context, p *Proc, ln *iwarp.Listener) error {
		return rping.Serve(ctx, ln, rping.ServerConfig{Config: r.config(p), Persistent: r.persistent, Reject: r.reject})
	})
}
