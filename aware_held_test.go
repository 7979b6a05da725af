package iwarp_test

import (
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestShownOctets: what many connections hold together of what their TCP shows ahead of order is bounded. Whoever finds no room gets
// everything in order, and none of them ends for it.
func TestShownOctets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		l := anyOrder
		l.recut = true
		res := newEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{HeldOctets: 4000}})
		var from, to [many]*end
		for i := range many {
			a, b := awarePair(l)
			from[i], to[i] = newEnd(t, iwarp.RNICConfig{}), &end{t: t, rnic: res.rnic, pd: newPD(t, res.rnic)}
			from[i].over(a, mpa.RoleInitiator)
			to[i].over(b, mpa.RoleResponder)
		}
		for i := range many {
			transfer(t, from[i], to[i])
			works(t, from[i], to[i])
		}
		for i := range many {
			finish(t, from[i], to[i])
		}
		if n := res.rnic.Stats().Ahead; n.Dropped == 0 || n.Placed == 0 {
			t.Errorf("%+v", n)
		}
	})
}
