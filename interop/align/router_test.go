//go:build interop && linux

package align_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// The router's addresses, on the way to A and on the way to B.
const (
	addrNear = "10.98.77.1"
	addrFar  = "10.98.77.2"
)

// newRoutedLink makes a link of two veth pairs with a router between, which it returns with its
// device on the way to B. Interfaces cut segments, as they do by default.
func newRoutedLink(t testing.TB, mtu int) (l *link, far side) {
	t.Helper()
	need(t)
	l = &link{newSide(t, "a"), newSide(t, "b")}
	near := newSide(t, "near")
	far = side{near.netns, "wire-far"}
	wire(t, l.a, near, mtu)
	wire(t, far, l.b, mtu)
	for _, hop := range []struct {
		s                  side
		addr, next, beyond string
	}{{l.a, addrA, addrNear, addrB}, {near, addrNear, addrA, ""}, {far, addrFar, addrB, ""},
		{l.b, addrB, addrFar, addrA}} {
		ip(t, "-n", hop.s.netns, "addr", "add", hop.addr+"/32", "dev", hop.s.device)
		ip(t, "-n", hop.s.netns, "link", "set", hop.s.device, "up")
		ip(t, "-n", hop.s.netns, "route", "add", hop.next+"/32", "dev", hop.s.device)
		if hop.beyond != "" {
			ip(t, "-n", hop.s.netns, "route", "add", hop.beyond+"/32", "via", hop.next)
			testrig.Must(t, hop.s.do(noLossProbes))
		}
	}
	testrig.Must(t, near.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) }))
	return l, far
}

// TestShrinkingPath makes the MTU beyond a router smaller while a transfer is under way, which the
// router tells by ICMP: nothing is lost, segments are aligned again, and a capture of packets
// that the interface has yet to cut shows that.
//
// Proves S03, S04.
func TestShrinkingPath(t *testing.T) {
	again := true
	for attempt := 1; again && attempt <= attempts && !t.Failed(); attempt++ {
		t.Run(fmt.Sprint(attempt), func(t *testing.T) { again = !shrinkPath(t) })
	}
	if again {
		t.Errorf("too few are aligned, or how packets are cut is not known, %d times", attempts)
	}
}

// shrinkPath is one transfer. It reports whether the change is known of, and segments were aligned but for what TCP had
// in its buffer when the path changed: of 16 MiB these are 2 at most (alignedAgain), and were all
// after the change counted wrongly it would be half of them.
func shrinkPath(t *testing.T) bool {
	t.Helper()
	const enough = 0.85
	l, far := newRoutedLink(t, 1500)
	r := l.record(t, false)
	port, _ := l.transfer(t, func() {
		ip(t, "-n", far.netns, "link", "set", far.device, "mtu", "1400")
		ip(t, "-n", l.b.netns, "link", "set", l.b.device, "mtu", "1400")
	})
	r.stop()
	c := r.conns[port]
	if c == nil {
		t.Fatal("the connection is not in the capture")
	}
	w := c.Halves[capture.Forward].Wire
	t.Logf("%.3f%% of segments aligned: %+v", 100*w.Share(), w)
	if w.Cut == 0 {
		t.Error("no packet was left to the interface to cut")
	}
	return w.Share() >= enough && w.Unknown == 0 && w.MSS == before && w.MSSAtEnd == after
}
