package probe_test

import (
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/mpa"
)

// TestExtensions finds that our own endpoint knows RFC 7306, whatever it begins with, and asks
// only if that is wanted.
//
// Proves X03.
func TestExtensions(t *testing.T) {
	for _, dialects := range [][]mpa.Dialect{nil, {mpa.DialectRFC5044}} {
		r := responder{dialects: dialects}.probed(t, probe.Config{Extensions: true})
		x := r.Extensions
		if x == nil || x.Atomics.Knows != probe.Knows || x.Immediate.Knows != probe.Knows || x.Unknown.Outcome != probe.Terminated || x.Unknown.Knows != "" {
			t.Fatalf("%v: %+v\n%s", dialects, x, text(t, r))
		}
		for _, want := range []string{"Atomic Operations", "known: terminate: RDMAP/Remote Protection/invalid STag (0x0100)", "Immediate Data"} {
			if !strings.Contains(text(t, r), want) {
				t.Errorf("no %q in\n%s", want, text(t, r))
			}
		}
	}
	if r := (responder{}).probed(t, probe.Config{}); r.Extensions != nil || strings.Contains(text(t, r), "Atomic") {
		t.Errorf("asked without being told to: %+v", r.Extensions)
	}
}

// TestExtensionsOfPeers finds that none of the known peers know them: their scripts have what
// RFC 5040 has.
//
// Proves X03.
func TestExtensionsOfPeers(t *testing.T) {
	for _, b := range peers.All() {
		r := probing(t, probe.Config{Extensions: true}, playing(b, peersim.Consumer{}, func(error) {}))
		if x := r.Extensions; x == nil || x.Atomics.Knows != probe.KnowsNot || x.Immediate.Knows != probe.KnowsNot {
			t.Errorf("%s: %+v\n%s", b.Name, x, text(t, r))
		}
	}
}

// TestExtensionsOfDeaf asks a responder that says nothing after its Reply: nothing is known then.
func TestExtensionsOfDeaf(t *testing.T) {
	r := probing(t, probe.Config{Extensions: true}, func(c net.Conn) {
		buf := make([]byte, 1024)
		for n, err := c.Read(buf); err == nil; n, err = c.Read(buf) {
			if f, ok := mpa.ParseStartup(buf[:n]); ok == nil && f.Rev() == 1 {
				_, _ = c.Write(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, Rev: 1, C: true}))
			}
		}
	})
	if r.Extensions != nil {
		t.Errorf("%+v", r.Extensions)
	}
}
