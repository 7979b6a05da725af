package iwarpsctp

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// destinations returns how many the Dials that share associations know of.
func (s *sharing) destinations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.to)
}

// TestSharingForgets: of a destination nothing is kept when its last association is gone, nor of one to which no Dial
// has come up.
func TestSharingForgets(t *testing.T) {
	n := &Network{ShareAssociations: true}
	ln, err := (&iwarp.ListenConfig{Network: n}).Listen(t.Context(), "sctp4", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	d := iwarp.Dialer{PD: pd, Network: n}
	var qps []*iwarp.QP
	for range 2 {
		go func() {
			req, err := ln.Accept(testrig.Within(t))
			testrig.Should(t, err)
			_, err = req.Accept(testrig.Within(t), iwarp.AcceptConfig{})
			testrig.Should(t, err)
		}()
		qp, err := d.Dial(testrig.Within(t), "sctp4", ln.Addr().String())
		testrig.Must(t, err)
		qps = append(qps, qp)
	}
	if _, err := d.Dial(testrig.Within(t), "sctp4", "127.0.0.1"); err == nil {
		t.Error("an address without a port was dialed")
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := d.Dial(over, "sctp4", ln.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	for i, qp := range qps {
		if n := n.shared.destinations(); n != 1 {
			t.Errorf("%d destinations are known while %d QPs are up", n, len(qps)-i)
		}
		testrig.Must(t, qp.Abort())
	}
	for over := testrig.Within(t); n.shared.destinations() > 0; runtime.Gosched() {
		testrig.Must(t, over.Err())
	}
}
