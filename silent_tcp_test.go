package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSilentTCP is TestSilentSCTP over a TCP in memory, whose patience with a silent peer ends before that of Close, or after it. Then a host is
// gone, from each packet on. Each Close returns in time: its CloseTimeout passes once while it waits for the peer's end, and once for the peer to have ours.
func TestSilentTCP(t *testing.T) {
	for _, patience := range []time.Duration{2 * time.Second, time.Minute} {
		told := 0
		for order := range 3 {
			packets, _ := silentTCP(t, silence{order: order, alone: true}, patience)
			for _, s := range append(silences(packets, order), departures(packets, order)...) {
				_, lost := silentTCP(t, s, patience)
				told += lost
			}
		}
		if told == 0 {
			t.Error("nobody was told of a loss")
		}
	}
}

// silentTCP plays one scene, and returns how many packets its ends have sent, and how many of these were told that the connection was lost.
func silentTCP(t *testing.T, s silence, patience time.Duration) (packets [2]int, lost int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var h hush
		a, b := hostPair(t, &h, 20*time.Millisecond, patience)
		ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
		const timeout = 5 * time.Second
		for _, e := range []*end{ini, res} {
			e.QP = create(t, e.pd, iwarp.QPConfig{HalfClose: true, CloseTimeout: timeout})
		}
		ini.over(a, mpa.RoleInitiator)
		res.over(b, mpa.RoleResponder)
		works(t, ini, res) // a Responder may send then
		time.Sleep(time.Second)
		h.arm(s)
		parted := partFrom(s, [2]*end{ini, res}, testrig.Soon, func(int) {})
		if err := parted.falsehood(s); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		for i, err := range parted.errs {
			if parted.took[i] > 2*timeout+time.Second {
				t.Errorf("%v: Close of end %d took %v", s, i, parted.took[i])
			}
			if errors.Is(err, iwarp.ErrConnectionLost) {
				lost++
			}
			if c := []hostConn{a, b}[i]; err != nil && c.parted() {
				t.Errorf("%v: end %d lacks nothing, nor does its peer but the FIN: %v", s, i, err)
			}
		}
		packets = [2]int{h.count(0), h.count(1)}
	})
	return packets, lost
}
