package iwarp_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A hushed socket is one of two between which a silence may fall.
type hushedSocket struct {
	*testrig.Socket
	hush *hush
	end  int
}

// WriteToUDPAddrPort is sctpudp.Socket's.
func (s hushedSocket) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if s.hush.loses(s.end) {
		return len(b), nil
	}
	return s.Socket.WriteToUDPAddrPort(b, to)
}

// TestSilentSCTP has each packet of an end in turn be lost, and then the path fall silent in one direction, or in both, as a host is gone, from each packet on: no end
// says that all is well where something that was completed has not arrived, and none speaks of a loss where a packet alone was lost. The programs
// end with their Close.
func TestSilentSCTP(t *testing.T) {
	for order := range 3 {
		packets := silentSCTP(t, silence{order: order, alone: true})
		for _, s := range append(silences(packets, order), departures(packets, order)...) {
			silentSCTP(t, s)
		}
	}
}

// silentSCTP plays one scene, and returns how many packets its ends have sent.
func silentSCTP(t *testing.T, s silence) (packets [2]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var h hush
		p := newHushedPair(t, testrig.Link{Delay: 20 * time.Millisecond}, &h)
		ini, res := p.connect(iwarp.QPConfig{HalfClose: true})
		time.Sleep(time.Second)
		h.arm(s)
		parted := partFrom(s, [2]*end{ini, res}, testrig.Soon, func(i int) { should(t, p.sockets[i].Close()) })
		if err := parted.falsehood(s); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		packets = [2]int{h.count(0), h.count(1)}
	})
	return packets
}
