package iwarp_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa/layout"
)

// TestLargeSegments looks at the segments of a long transfer: they are as large as
// TCP's EMSS allows in the end.
//
// Proves S03.
func TestLargeSegments(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{})
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	accepted := res.takes(ln, iwarp.AcceptConfig{PD: res.pd})
	c := dialTCP(t, ln.Addr().String())
	d := iwarp.Dialer{PD: ini.pd}
	var err error
	ini.QP, err = d.Initiate(within(t), c, nil)
	must(t, err)
	must(t, <-accepted)
	n := ini.Negotiated()
	if n.EMSS < 536 || n.MULPDU != layout.MULPDU(n.EMSS, false) {
		t.Errorf("EMSS %d and MULPDU %d, TCP now says %d", n.EMSS, n.MULPDU, maxSegment(t, c))
	}
	src, dst := ini.mr(1<<20, 0), res.mr(1<<20, iwarp.RemoteWrite)
	for round := 0; round < 4 || ini.Query().MULPDU != layout.MULPDU(maxSegment(t, c), false); round++ {
		if round == 100 {
			t.Fatalf("MULPDU %d, TCP's EMSS is %d", ini.Query().MULPDU, maxSegment(t, c))
		}
		if _, err := ini.Write(within(t), src.Slice(0, 1<<20), dst.Remote(0)); err != nil {
			t.Fatal(err)
		}
	}
	if s := ini.Stats(); s.SentStream/s.SentFPDUs < uint64(n.EMSS)/2 {
		t.Errorf("%d FPDUs for %d octets, with an EMSS of %d at first", s.SentFPDUs, s.SentStream, n.EMSS)
	}
}

// TestPipe runs over a connection that is no socket.
//
// Proves S03.
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true}.connect(t)
		if n := ini.Negotiated(); n.EMSS != 1460 || n.MULPDU != layout.MULPDU(1460, false) {
			t.Errorf("EMSS %d, MULPDU %d", n.EMSS, n.MULPDU)
		}
		works(t, ini, res)
		finish(t, ini, res)
	})
}

// TestNoHalves runs over a connection that cannot be closed by halves: it is
// closed as a whole.
func TestNoHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		ini := newEnd(t, iwarp.RNICConfig{})
		res := newEnd(t, iwarp.RNICConfig{})
		accepted := dialInBackground(t, func() error {
			req, err := iwarp.Respond(t.Context(), b, nil, iwarp.ListenConfig{PD: res.pd})
			if err == nil {
				res.QP, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			return err
		})
		d := iwarp.Dialer{PD: ini.pd}
		var err error
		if ini.QP, err = d.Initiate(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		must(t, <-accepted)
		works(t, ini, res)
		if err := ini.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("CloseWrite: %v", err)
		}
		works(t, ini, res)
		finish(t, ini, res)
	})
}
