package iwarp_test

import (
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestCloseAgain closes what was closed: that is ErrClosed, in words of its own. What has ended by itself can be closed
// once more, and so can QPs.
func TestCloseAgain(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{})
	must(t, err)
	mr, err := pd.Register(make([]byte, 8), 0)
	must(t, err)
	overSCTP, err := iwarp.Listen(t.Context(), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{RNIC: rnic})
	must(t, err)
	for _, c := range []struct {
		close func() error
		words string
	}{
		{listen(t, iwarp.ListenConfig{RNIC: rnic}).Close, "the Listener was closed"},
		{overSCTP.Close, "the Listener was closed"},
		{mr.Deregister, "the memory was deregistered"},
		{srq.Close, "the SRQ was closed"},
		{newCQ(t, rnic, 1).Close, "the CQ was closed"},
		{pd.Close, "the Protection Domain was closed"},
		{rnic.Close, "the RNIC was closed"},
	} {
		must(t, c.close())
		for range 2 {
			wantSaid(t, "again", c.close(), iwarp.ErrClosed, c.words)
		}
	}
	must(t, rnic.Shutdown(within(t)))

	down := iwarp.NewRNIC(iwarp.RNICConfig{})
	must(t, down.Shutdown(within(t)))
	must(t, down.Shutdown(within(t)))
	wantSaid(t, "Close after Shutdown", down.Close(), iwarp.ErrClosed, "the RNIC was closed")
}

// TestCloseByItself closes what ended with the QP that it was made for, and the QP again.
func TestCloseByItself(t *testing.T) {
	t.Parallel()
	ln := listen(t, iwarp.ListenConfig{})
	res := newEnd(t, iwarp.RNICConfig{})
	taken := res.takes(ln, iwarp.AcceptConfig{PD: res.pd})
	qp, err := (&iwarp.Dialer{QP: unhurried(iwarp.QPConfig{})}).Dial(within(t), "tcp", ln.Addr().String())
	must(t, err)
	must(t, <-taken)
	for range 2 {
		should(t, qp.Close())
		should(t, qp.Abort())
		should(t, qp.SendCQ().Close())
		should(t, qp.PD().Close())
	}
}
