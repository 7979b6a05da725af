package target_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// TestTwoConnects sends several Connects at once on one Admin Queue: one of them makes a controller, which goes with
// the connection, so that there is room for another host's.
func TestTwoConnects(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Controllers = 1 })
	for round := range 10 {
		tries := 1000 // as the controller of the round before goes after its connection
		for ; tries > 0 && !connectsAtOnce(t, r); tries-- {
		}
		if tries == 0 {
			t.Fatalf("round %d: there is no room for a controller, though all connections have ended", round)
		}
	}
}

// connectsAtOnce reports whether one of the Connects made a controller, which is gone when the connection has ended.
func connectsAtOnce(t *testing.T, r *rig) bool {
	w, made := r.dial(0, 32), 0
	var all []chan completion
	for i := range 4 {
		s := w.put(w.data(capsule.AnyController, nqn).Append(nil), i*1024)
		all = append(all, w.send(capsule.Connect{SGL: s, SQSize: 31}.Command(), nil))
	}
	for _, c := range all {
		switch got := <-c; got.Status {
		case capsule.Success:
			made++
		case capsule.SequenceError | capsule.DNR, capsule.ControllerBusy:
		default:
			t.Errorf("a Connect beside another: %v", got.Status)
		}
	}
	if made > 1 {
		t.Errorf("%d controllers of one Admin Queue", made)
	}
	_ = w.qp.Close()
	<-w.over
	return made > 0
}

// TestLogBeyondItsEnd asks for more of a log page than there is, where the memory has had other data: they are zero.
func TestLogBeyondItsEnd(t *testing.T) {
	r := newRig(t, nil)
	w := r.admin()
	for range 3 {
		s := w.put(pattern(4096, 7), 0)
		w.want(capsule.Success, capsule.GetLogPage{Page: capsule.LogHealth, Dwords: 1024, SGL: s}.Command(), nil)
		same(t, "the log", w.memory.Bytes()[:4096], make([]byte, 4096))
	}
}
