package iwarp_test

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestMain fails if a goroutine of the package is left when all tests are over.
func TestMain(m *testing.M) { rig.Main(m) }

// nothingLeft waits for the end of the connections that other tests have left, whose memory is in the way of a
// measurement, too.
func nothingLeft(t *testing.T) {
	t.Helper()
	rig.Until(t, func() bool { return goroutines() == 0 }, "the end of what other tests have left")
}

func goroutines() int { return strings.Count(rig.Ours(), "created by") }

// TestGoroutines counts them: at most two for each connection, one on an idle one,
// and none when it has ended.
func TestGoroutines(t *testing.T) {
	nothingLeft(t)
	const pairs = 10
	var ends []*rig.End
	for range pairs {
		ini, res := rig.Connect(t)
		rig.Works(t, ini, res)
		ends = append(ends, ini, res)
	}
	listeners := pairs // one for each, which the test closes when it is over
	rig.Until(t, func() bool { return goroutines() == 2*pairs+listeners }, "one goroutine for each end")
	for i, e := range ends {
		end := e.Close
		if i%4 == 0 {
			end = e.Abort
		}
		_ = end()
	}
	rig.Until(t, func() bool { return goroutines() == listeners }, "no goroutine")
}

// TestBlockedSender has a sender that waits for its peer: two goroutines, and no
// third.
func TestBlockedSender(t *testing.T) {
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
	rig.Until(t, func() bool { return goroutines() == 2 }, "the receiver and the listener")
	src := res.MR(1<<20, 0)
	for range 60 {
		res.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, 1<<20)},
			Remote: iwarp.Remote{STag: 5}})
	}
	for range 100 {
		p.Send(p.Write(1, 0, nil))
	}
	if n := goroutines(); n > 3 {
		t.Errorf("%d goroutines:\n%s", n, rig.Ours())
	}
	_ = res.Abort()
}
