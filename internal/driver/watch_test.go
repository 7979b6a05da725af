package driver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestAnswerMeasured: an Initiator's RTR indication, which we wait for, tells how long the path is. No other first FPDU
// does: it comes when the peer's consumer has something to say.
func TestAnswerMeasured(t *testing.T) {
	for _, c := range []struct {
		role       mpa.Role
		peerToPeer bool
		want       time.Duration
	}{
		{mpa.RoleResponder, true, time.Second},
		{mpa.RoleResponder, false, 0},
		{mpa.RoleInitiator, true, 0},
		{mpa.RoleInitiator, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := testrig.Pipe("near", "far")
			s, peer := newSetup(c.role), newSetup(mpa.RoleInitiator+mpa.RoleResponder-c.role)
			if c.peerToPeer {
				s.peerToPeer()
				peer.peerToPeer()
			}
			e := s.on(t, a)
			far, m := peer.prepared(t, b)
			time.Sleep(time.Second) // of virtual time
			far.run(m)
			if peer.params.Role == mpa.RoleResponder { // which is not heard of before
				e.post(emptyWrite())
				synctest.Wait()
			}
			far.post(emptyWrite())
			synctest.Wait()
			time.Sleep(time.Minute)
			far.post(emptyWrite())
			synctest.Wait()
			e.Conn.mu.Lock()
			got := e.watch.answer
			e.Conn.mu.Unlock()
			if got != c.want {
				t.Errorf("%v, peer-to-peer %t: %v, want %v", c.role, c.peerToPeer, got, c.want)
			}
			if e.Figures().Stats.RecvFPDUs < 2 {
				t.Errorf("%v, peer-to-peer %t: the peer has not sent", c.role, c.peerToPeer)
			}
			e.Abort(nil)
			far.Abort(nil)
		})
	}
}

// TestNothingToWatch: a timer that fires when there is nothing more to watch over ends nothing.
func TestNothingToWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := inMemory(t)
		e.onWatch()
		if s := e.Status().State; s != engine.RTS {
			t.Errorf("state %v", s)
		}
		e.Abort(nil)
	})
}
