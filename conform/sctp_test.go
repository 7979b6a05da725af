package conform_test

import (
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
)

// sctpServer starts rping -s of ours over SCTP.
func sctpServer(t *testing.T, rejects bool) (addr string) {
	t.Helper()
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network)}).Listen(t.Context(), "sctp4", "127.0.0.1:0")
	testrig.Must(t, err)
	cfg := rping.ServerConfig{Persistent: true}
	if rejects {
		cfg.Reject = new(string)
	}
	stop := rping.Start(t.Context(), ln, cfg)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// overSCTP are options for a peer over SCTP. The long time is only waited for where the peer
// fails to do what it must.
func overSCTP(addr string) conform.Options {
	return conform.Options{Role: mpa.RoleResponder, SCTP: addr, App: conform.AppRping, Timeout: testrig.Soon,
		Quiet: 20 * time.Millisecond}
}

// TestSCTP has our endpoint pass every case, and each that it is not asked for say why.
//
// Proves C01, C02, C03, C04, C05, C06, C07, C08, C09, C10, C11, C12, C13, C14, C15.
func TestSCTP(t *testing.T) {
	t.Parallel()
	all, sum := collect(t, overSCTP(sctpServer(t, false)))
	for id, r := range all {
		if want := r.Case.App == conform.AppReject; (r.Verdict == conform.NotApplicable) != want ||
			r.Verdict == conform.Fail || r.Verdict == conform.Inconclusive {
			var text strings.Builder
			conform.NewPrinter(&text, true).Result(&r)
			t.Errorf("%s: %s", id, &text)
		}
	}
	if !sum.OK() || sum.Passed < 30 {
		t.Errorf("%+v", sum)
	}
	o := overSCTP(sctpServer(t, true))
	o.App = conform.AppReject
	if all, sum := collect(t, o); sum.Passed != 2 || sum.Failed+sum.Inconclusive > 0 {
		t.Errorf("%+v, %v", sum, all)
	}
}

// TestSCTPNobody tests where nobody answers, and what cannot be tested.
func TestSCTPNobody(t *testing.T) {
	t.Parallel()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	testrig.Must(t, err)
	defer pc.Close()
	o := overSCTP(pc.LocalAddr().String())
	o.Timeout = 50 * time.Millisecond
	if _, sum := collect(t, o); sum.Inconclusive != 3 || sum.OK() || sum.Stopped == "" {
		t.Errorf("%+v", sum)
	}
	o.Role = mpa.RoleInitiator
	if _, err := conform.Run(t.Context(), o, nil); err == nil {
		t.Error("an Initiator over SCTP, and no error")
	}
	cases, err := conform.Options{Role: mpa.RoleResponder, Filter: regexp.MustCompile("^sctp/")}.Selected()
	if err == nil {
		t.Errorf("%d cases over SCTP for a peer over TCP", len(cases))
	}
}
