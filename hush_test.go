package iwarp_test

import (
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestReadAfterPolling: a consumer polls for long, and then no longer. What the peer does by itself goes on.
func TestReadAfterPolling(t *testing.T) {
	ini, res := setup{}.connect(t)
	from, to := res.mr(100, iwarp.RemoteRead), ini.mr(100, iwarp.LocalWrite)
	for range 20 {
		var wc [1]iwarp.WC
		for range 600 {
			if res.RecvCQ().Poll(wc[:]) != 0 {
				t.Fatal(wc[0])
			}
		}
		if n, err := ini.Read(t.Context(), to.Slice(0, 100), from.Remote(0)); n != 100 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// TestPollerBesideWaiter: one consumer polls one CQ, and now and then does not; another one waits for messages at the other, and gets each.
func TestPollerBesideWaiter(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	sends, err := rnic.CreateCQ(100)
	must(t, err)
	recvs, err := rnic.CreateCQ(100)
	must(t, err)
	ini, res := setup{accept: iwarp.AcceptConfig{PD: newPD(t, rnic), QP: iwarp.QPConfig{SendCQ: sends, RecvCQ: recvs}}}.connect(t)
	var over atomic.Bool
	polls := dialInBackground(t, func() error {
		var wc [1]iwarp.WC
		for !over.Load() {
			sends.Poll(wc[:])
		}
		return nil
	})
	for n := range 200 {
		if n == 100 {
			over.Store(true)
			must(t, <-polls)
		}
		must(t, deliver(ini, res))
		_, err := recvs.Next(t.Context())
		must(t, err)
	}
}
