package iwarp_test

import (
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestSeveralCQs waits for several CQs at once.
//
// RDMA verbs 8: a notice comes once for an Arm, also for one of solicited completions, and not for what
// is there already; of which CQ it is can be told.
func TestSeveralCQs(t *testing.T) {
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	a, b := rig.NewCQ(t, res.RNIC, 64), rig.NewCQ(t, res.RNIC, 64)
	one, atA := rig.Setup{Accept: iwarp.AcceptConfig{PD: res.PD, QP: iwarp.QPConfig{RecvCQ: a, SendCQ: b}}}.Connect(t)
	two, atB := rig.Setup{Accept: iwarp.AcceptConfig{PD: res.PD, QP: iwarp.QPConfig{RecvCQ: b}}}.Connect(t)
	none := func(why string) {
		t.Helper()
		select {
		case <-a.Events():
			t.Errorf("%s: a notice of the first", why)
		case <-b.Events():
			t.Errorf("%s: a notice of the second", why)
		default:
		}
	}
	take := func(want *iwarp.CQ) {
		t.Helper()
		select {
		case <-want.Events():
		case <-rig.Within(t).Done():
			t.Fatalf("no notice of %v", want)
		}
	}
	receives := func(from, at *rig.End, solicited bool) {
		t.Helper()
		at.MustPostRecv(1)
		from.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Solicited: solicited, Unsignaled: true})
		rig.Until(t, func() bool { return at.Query().Receives == 0 }, "a message")
	}
	receives(one, atA, false)
	none("not armed")
	a.Arm(false)
	none("it was there before")
	rig.Next(t, a)
	receives(one, atA, false)
	receives(one, atA, false)
	take(a)
	none("armed once")
	a.Arm(true)
	b.Arm(true)
	receives(one, atA, false)
	receives(two, atB, false)
	none("nothing solicited")
	receives(two, atB, true)
	receives(one, atA, true)
	take(b)
	take(a)
	b.Arm(false)
	receives(two, atB, false)
	b.Arm(false)
	receives(two, atB, false)
	take(b)
	none("two notices of one CQ are one")
	b.Arm(false)
	receives(two, atB, false)
	rig.Finish(t, one, atA)
	rig.Finish(t, two, atB)
	take(b)
	none("after the end")
}
