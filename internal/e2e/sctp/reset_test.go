package sctp

import (
	"context"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// givenUp are the ways in which this side ends a connection that its peer has not closed.
var givenUp = map[string]func(t *testing.T, e *rig.End){
	"Abort":              func(_ *testing.T, e *rig.End) { _ = e.Abort() },
	"Modify(StateError)": func(t *testing.T, e *rig.End) { rig.Should(t, e.Modify(iwarp.StateError)) },
	"RNIC.Close":         func(_ *testing.T, e *rig.End) { _ = e.RNIC.Close() },
	"Shutdown given up": func(t *testing.T, e *rig.End) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.RNIC.Shutdown(over); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v", err)
		}
	},
	"CQ overflow": func(_ *testing.T, e *rig.End) {
		for range 3 {
			_ = e.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite}) // of nothing, which no peer minds
		}
	},
}

// TestSCTPGivenUp: the peer of a connection that is given up has sent something, which was completed, and nothing is
// under way: it learns that this was no orderly end.
func TestSCTPGivenUp(t *testing.T) {
	for name, give := range givenUp {
		t.Run(name, func(t *testing.T) {
			s := overSCTP()
			if rnic := rig.NewRNIC(t, iwarp.RNICConfig{}); name == "CQ overflow" {
				s.Accept.PD, s.Accept.QP.SendCQ = rig.NewPD(t, rnic), rig.NewCQ(t, rnic, 1)
			}
			ini, res := s.Connect(t)
			if name != "CQ overflow" {
				rig.Works(t, ini, res)
			}
			give(t, res)
			wantLost(t, ini)
		})
	}
}

// TestSCTPGivenUpIdle: the same where nothing was sent for IdleTimeout.
func TestSCTPGivenUpIdle(t *testing.T) {
	ini, _ := overSCTP().Idles(t)
	wantLost(t, ini)
}

func wantLost(t *testing.T, e *rig.End) {
	t.Helper()
	rig.Wait(t, e.Done(), "the end of the peer's connection")
	if err := e.Err(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the peer: %v", err)
	}
}

// TestSCTPSharedGivenUp: where others share the association, they go on, and a Terminate tells the peer.
func TestSCTPSharedGivenUp(t *testing.T) {
	t.Parallel()
	c := newSharers(t)
	ini, res := c.dial()
	other, its := c.dial()
	c.says(ini, res, "completed")
	rig.Must(t, res.Abort())
	rig.Wait(t, ini.Done(), "the end of the peer's connection")
	var told *iwarp.TerminateError
	if err := ini.Err(); !errors.As(err, &told) || !told.Remote || told.Code != rdmap.CodeLocalCatastrophic {
		t.Errorf("the peer: %v", err)
	}
	c.says(other, its, "unharmed")
	c.says(its, other, "unharmed, too")
	rig.CloseBoth(t, other, its)
}
