package iwarp_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/usertcp"
)

// A hushed link is one of two stacks between which a silence may fall.
type hushedLink struct {
	usertcp.Link
	hush *hush
	end  int
}

// Send is Link's.
func (l hushedLink) Send(packet []byte) {
	if !l.hush.loses(l.end) {
		l.Link.Send(packet)
	}
}

// hushedStacks are two between which a silence may fall.
func hushedStacks(t testing.TB, h *hush, path usertcp.Path) (stacks [2]*usertcp.Stack) {
	t.Helper()
	one, other := usertcp.Pipe(1500, path, path)
	for i, l := range []usertcp.Link{one, other} {
		var err error
		at := netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
		stacks[i], err = usertcp.New(usertcp.Config{Addresses: []netip.Addr{at}, Link: hushedLink{l, h, i}})
		must(t, err)
		t.Cleanup(func() { should(t, stacks[i].Close()) })
	}
	return stacks
}

// TestSilentUserTCP is TestSilentSCTP over a TCP in user space. Its time is real: the scenes are played at once.
func TestSilentUserTCP(t *testing.T) {
	t.Parallel()
	var orders sync.WaitGroup
	for order := range 3 {
		orders.Go(func() {
			packets := silentUserTCP(t, silence{order: order, alone: true})
			for _, s := range silences(packets, order) {
				orders.Go(func() { silentUserTCP(t, s) })
			}
		})
	}
	orders.Wait()
}

// silentUserTCP plays one scene, and returns how many packets its ends have sent.
func silentUserTCP(t *testing.T, s silence) [2]int {
	t.Helper()
	var h hush
	patience := 5 * time.Second // also where the machine has much else to do
	if s.alone {
		patience = testrig.Soon
	}
	stacks := hushedStacks(t, &h, usertcp.Path{Delay: 5 * time.Millisecond})
	qp := iwarp.QPConfig{HalfClose: true, CloseTimeout: patience, CloseLimit: -1}
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(t.Context(), "tcp", "192.0.2.2:7174", iwarp.ListenConfig{PD: res.pd, Stack: stacks[1], RequestTimeout: soon})
	must(t, err)
	defer ln.Close()
	accepted := res.takes(ln, iwarp.AcceptConfig{QP: qp})
	must(t, <-ini.dials(iwarp.Dialer{PD: ini.pd, Stack: stacks[0], QP: qp}, ln))
	must(t, <-accepted)
	h.arm(s)
	parted := partFrom(s, [2]*end{ini, res}, patience, func(i int) { should(t, stacks[i].Close()) })
	if err := parted.falsehood(s); err != nil {
		t.Errorf("%v: %v", s, err)
	}
	return [2]int{h.count(0), h.count(1)}
}
