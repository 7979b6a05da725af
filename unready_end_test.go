package iwarp_test

import (
	"errors"
	"path"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// twoWait has four Sends come of which two may wait, and no receive posted: the peer is held back.
func twoWait(t *testing.T, ini, res *end) {
	t.Helper()
	for range 4 {
		must(t, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
	}
	until(t, func() bool { return res.Stats().Received[rdmap.OpSend].Messages >= 2 }, "messages wait")
}

// TestUnreadyClosed closes an end for which Sends wait, in each way: none of them is lost without a word. Both ends learn that they found no
// receive, as if they had not waited.
//
// Proves D37.
func TestUnreadyClosed(t *testing.T) {
	for name, ends := range map[string]func(*testing.T, *end) error{
		"Close":    func(_ *testing.T, e *end) error { return e.Close() },
		"Shutdown": func(t *testing.T, e *end) error { return e.rnic.Shutdown(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			overLayers(t, iwarp.QPConfig{Unready: iwarp.Unready{Messages: 2}}, func(t *testing.T, ini, res *end, _ func()) {
				twoWait(t, ini, res)
				err := ends(t, res)
				wantNoReceive(t, err, false)
				if !contains(err, "the consumer closes without a receive") {
					t.Errorf("%v", err)
				}
				wantNoReceive(t, ini.wantEnd(), true)
			})
		})
	}
}

// wantNoReceive expects the error of a connection that has ended over a Send without a receive.
func wantNoReceive(t *testing.T, err error, byPeer bool) {
	t.Helper()
	var end *iwarp.TerminateError
	if !errors.As(err, &end) || end.Code != rdmap.CodeDDPInvalidMSNNoBuffer || end.Remote != byPeer {
		t.Errorf("%v", err)
	}
}

// TestUnreadyAborted aborts an end that holds its peer back, over each lower layer.
func TestUnreadyAborted(t *testing.T) {
	overLayers(t, iwarp.QPConfig{Unready: iwarp.Unready{Messages: 2}}, func(t *testing.T, ini, res *end, _ func()) {
		twoWait(t, ini, res)
		must(t, res.Abort())
		if err := ini.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("%v", err)
		}
	})
}

// TestUnreadyLost aborts an end that is held back: the other one learns that, although it receives nothing, where the lower layer tells.
func TestUnreadyLost(t *testing.T) {
	overLayers(t, iwarp.QPConfig{Unready: iwarp.Unready{Messages: 2}}, func(t *testing.T, ini, res *end, _ func()) {
		if over := path.Base(t.Name()); over != "SCTP" && (over != "TCP" || runtime.GOOS != "linux") {
			return
		}
		twoWait(t, ini, res)
		must(t, ini.Abort())
		if err := res.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("%v", err)
		}
	})
}

// TestUnreadyIdle: IdleTimeout bounds how long Sends wait when nobody posts a receive, whether the peer is held back or not. A consumer
// that takes its time is not idle.
func TestUnreadyIdle(t *testing.T) {
	for _, bound := range []int{2, 100} {
		synctest.Test(t, func(t *testing.T) {
			cfg := iwarp.QPConfig{Unready: iwarp.Unready{Messages: bound}, IdleTimeout: time.Minute}
			ini, res := setup{pipe: true, accept: iwarp.AcceptConfig{QP: cfg}}.connect(t)
			for range 4 {
				ini.post(&iwarp.SendWR{Op: iwarp.OpSend})
			}
			for id := range uint64(2) {
				time.Sleep(50 * time.Second)
				res.postRecv(id)
				res.wantReceived(id, iwarp.StatusSuccess)
			}
			time.Sleep(50 * time.Second)
			if err := res.Err(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			if err := res.Err(); !errors.Is(err, iwarp.ErrIdle) || !contains(err, "no receive was posted") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestUnreadyHeldOctets: what waits for receives counts against what all peers of an RNIC may have it hold. The connection that has most of
// it ends as without Unready; others have the room.
//
// Proves Z01.
func TestUnreadyHeldOctets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{HeldOctets: 5000}})
		connect := func() (ini, res *end) {
			return setup{pipe: true, accept: iwarp.AcceptConfig{PD: newPD(t, rnic), QP: iwarp.QPConfig{Unready: iwarp.Unready{Messages: 10}}}}.connect(t)
		}
		send := func(e *end, n int) { must(t, e.Send(t.Context(), e.filled(n, 1, 0).Slice(0, n))) }
		big, its := connect()
		send(big, 4000)
		small, other := connect()
		send(small, 1000)
		wantNoReceive(t, big.wantEnd(), true)
		if err := its.wantEnd(); !errors.Is(err, iwarp.ErrLimit) {
			t.Errorf("%v", err)
		}
		send(small, 3000)
		for id, n := range []int{1000, 3000} {
			other.postRecv(uint64(id), other.mr(n, iwarp.LocalWrite).Slice(0, n))
			other.wantReceived(uint64(id), iwarp.StatusSuccess)
		}
		send(small, 4000)
		synctest.Wait()
		if err := small.Err(); err != nil {
			t.Error(err)
		}
	})
}
