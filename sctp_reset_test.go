package iwarp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// givenUp are the ways in which this side ends a connection that its peer has not closed.
var givenUp = map[string]func(t *testing.T, e *end){
	"Abort":              func(_ *testing.T, e *end) { _ = e.Abort() },
	"Modify(StateError)": func(t *testing.T, e *end) { should(t, e.Modify(iwarp.StateError)) },
	"RNIC.Close":         func(_ *testing.T, e *end) { _ = e.rnic.Close() },
	"Shutdown given up": func(t *testing.T, e *end) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.rnic.Shutdown(over); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v", err)
		}
	},
	"CQ overflow": func(_ *testing.T, e *end) {
		for range 3 {
			_ = e.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite}) // of nothing, which no peer minds
		}
	},
}

// TestSCTPGivenUp: the peer of a connection that is given up has sent something, which was completed, and nothing is under
// way: it learns that this was no orderly end.
func TestSCTPGivenUp(t *testing.T) {
	for name, give := range givenUp {
		t.Run(name, func(t *testing.T) {
			s := overSCTP()
			if rnic := newRNIC(t, iwarp.RNICConfig{}); name == "CQ overflow" {
				s.accept.PD, s.accept.QP.SendCQ = newPD(t, rnic), newCQ(t, rnic, 1)
			}
			ini, res := s.connect(t)
			if name != "CQ overflow" {
				works(t, ini, res)
			}
			give(t, res)
			wantLost(t, ini)
		})
	}
}

// TestSCTPGivenUpIdle: the same where nothing was sent for IdleTimeout.
func TestSCTPGivenUpIdle(t *testing.T) {
	ini, _ := overSCTP().idles(t)
	wantLost(t, ini)
}

// idles brings up a connection whose Responder ends it when nothing has come for a while. On a busy machine that
// may be before it is up: then the while is longer.
func (s setup) idles(t *testing.T) (ini, res *end) {
	t.Helper()
	for limit := 20 * time.Millisecond; ; limit *= 2 {
		s.accept.QP.IdleTimeout = limit
		ini, res, err := s.try(t)
		if err == nil {
			return ini, res
		}
		if limit > soon {
			t.Fatal(err)
		}
	}
}

func wantLost(t *testing.T, e *end) {
	t.Helper()
	wait(t, e.Done(), "the end of the peer's connection")
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
	must(t, res.Abort())
	wait(t, ini.Done(), "the end of the peer's connection")
	var told *iwarp.TerminateError
	if err := ini.Err(); !errors.As(err, &told) || !told.Remote || told.Code != rdmap.CodeLocalCatastrophic {
		t.Errorf("the peer: %v", err)
	}
	c.says(other, its, "unharmed")
	c.says(its, other, "unharmed, too")
	closeBoth(t, other, its)
}
