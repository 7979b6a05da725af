package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestAwareOfEarlier has TCP show bytes of a connection while the QP has another one already: a goroutine of TCP's
// may have been on its way. They are nothing to the new connection.
func TestAwareOfEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := playAware(t)
		synctest.Wait()
		late := first.c.Out.Show
		rig.Must(t, first.c.Close())
		rig.Wait(t, first.end.Done(), "the end of the first connection")
		late(100, rig.Pattern(700, 1))
		rig.Must(t, first.end.Modify(iwarp.StateIdle))
		late(100, rig.Pattern(700, 1))
		second := playAwareTo(t, first.end)
		synctest.Wait()
		late(100, rig.Pattern(700, 1))
		if n := second.end.Stats().Ahead; n != (iwarp.Stats{}).Ahead {
			t.Errorf("counted %+v", n)
		}
		second.shows(100, rig.Pattern(700, 1))
		if n := second.end.Stats().Ahead; n.MostBytes == 0 {
			t.Errorf("of its own connection: %+v", n)
		}
	})
}

// TestAwareIsNotIdle has bytes arrive ahead of order only, now and then: a connection on which something arrives is
// not idle.
func TestAwareIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig.NewEnd(t, iwarp.RNICConfig{})
		e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{IdleTimeout: 10 * time.Second})
		p := playAwareTo(t, e)
		for range 4 {
			time.Sleep(9 * time.Second)
			p.shows(100, rig.Pattern(50, 1))
		}
		if p.end.State() != iwarp.StateRTS {
			t.Fatalf("in state %v: %v", p.end.State(), p.end.Err())
		}
		time.Sleep(11 * time.Second)
		if err := p.wantEndOf(); !errors.Is(err, iwarp.ErrIdle) {
			t.Errorf("%v", err)
		}
	})
}
