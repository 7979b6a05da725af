package endings

import (
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/usertcp"
)

// TestSilentTCP is TestSilentSCTP over a TCP in memory, whose patience with a silent peer ends before that of Close, or
// after it. Then a host is gone, from each packet on. Each Close returns in time: its CloseTimeout passes once while it
// waits for the peer's end, and once for the peer to have ours.
func TestSilentTCP(t *testing.T) {
	for _, patience := range []time.Duration{2 * time.Second, time.Minute} {
		told := 0
		for order := range 3 {
			packets, _ := silentTCP(t, rig.Silence{Order: order, Alone: true}, patience)
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

// silentTCP plays one scene, and returns how many packets its ends have sent, and how many of these were told that the
// connection was lost.
func silentTCP(t *testing.T, s rig.Silence, patience time.Duration) (packets [2]int, lost int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var h rig.HushedSystem
		a, b := hostPair(t, &h, 20*time.Millisecond, patience)
		ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
		const timeout = 5 * time.Second
		for _, e := range []*rig.End{ini, res} {
			e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{HalfClose: true, CloseTimeout: timeout})
		}
		ini.Over(a, mpa.RoleInitiator)
		res.Over(b, mpa.RoleResponder)
		rig.Works(t, ini, res) // a Responder may send then
		time.Sleep(time.Second)
		h.Arm(s)
		parted := partFrom(s, [2]*rig.End{ini, res}, testrig.Soon, func(int) {})
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
		packets = [2]int{h.Count(0), h.Count(1)}
	})
	return packets, lost
}

// TestSilentSCTP has each packet of an end in turn be lost, and then the path fall silent in one direction, or in both,
// as a host is gone, from each packet on: no end says that all is well where something that was completed has not
// arrived, and none speaks of a loss where a packet alone was lost. The programs end with their Close.
func TestSilentSCTP(t *testing.T) {
	for order := range 3 {
		packets := silentSCTP(t, rig.Silence{Order: order, Alone: true})
		for _, s := range append(silences(packets, order), departures(packets, order)...) {
			silentSCTP(t, s)
		}
	}
}

// silentSCTP plays one scene, and returns how many packets its ends have sent.
func silentSCTP(t *testing.T, s rig.Silence) (packets [2]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var h rig.HushedSystem
		p := rig.NewHushedPair(t, testrig.Link{Delay: 20 * time.Millisecond}, &h)
		ini, res := p.Connect(iwarp.QPConfig{HalfClose: true})
		time.Sleep(time.Second)
		h.Arm(s)
		parted := partFrom(s, [2]*rig.End{ini, res}, testrig.Soon, func(i int) { rig.Should(t, p.Sockets[i].Close()) })
		if err := parted.falsehood(s); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		packets = [2]int{h.Count(0), h.Count(1)}
	})
	return packets
}

// A hushed link is one of two stacks between which a silence may fall.
type hushedLink struct {
	usertcp.Link
	hush *rig.HushedSystem
	end  int
}

// Send is Link's.
func (l hushedLink) Send(packet []byte) {
	if !l.hush.Loses(l.end) {
		l.Link.Send(packet)
	}
}

// hushedStacks are two between which a silence may fall.
func hushedStacks(t testing.TB, h *rig.HushedSystem, path usertcp.Path) (stacks [2]*usertcp.Stack) {
	t.Helper()
	one, other := usertcp.Pipe(1500, path, path)
	for i, l := range []usertcp.Link{one, other} {
		var err error
		at := netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
		stacks[i], err = usertcp.New(usertcp.Config{Addresses: []netip.Addr{at}, Link: hushedLink{l, h, i}})
		rig.Must(t, err)
		t.Cleanup(func() { rig.Should(t, stacks[i].Close()) })
	}
	return stacks
}

// TestSilentUserTCP is TestSilentSCTP over a TCP in user space. Its time is real: the scenes are played at once.
func TestSilentUserTCP(t *testing.T) {
	t.Parallel()
	var orders sync.WaitGroup
	for order := range 3 {
		orders.Go(func() {
			packets := silentUserTCP(t, rig.Silence{Order: order, Alone: true})
			for _, s := range silences(packets, order) {
				orders.Go(func() { silentUserTCP(t, s) })
			}
		})
	}
	orders.Wait()
}

// silentUserTCP plays one scene, and returns how many packets its ends have sent.
func silentUserTCP(t *testing.T, s rig.Silence) [2]int {
	t.Helper()
	var h rig.HushedSystem
	patience := 5 * time.Second // also where the machine has much else to do
	if s.Alone {
		patience = testrig.Soon
	}
	stacks := hushedStacks(t, &h, usertcp.Path{Delay: 5 * time.Millisecond})
	qp := iwarp.QPConfig{HalfClose: true, CloseTimeout: patience, CloseLimit: -1}
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{PD: res.PD, Stack: stacks[1], RequestTimeout: rig.Soon}).Listen(
		t.Context(), "tcp", "192.0.2.2:7174")
	rig.Must(t, err)
	defer ln.Close()
	accepted := res.Takes(ln, iwarp.AcceptConfig{QP: qp})
	rig.Must(t, <-ini.Dials(iwarp.Dialer{PD: ini.PD, Stack: stacks[0], QP: qp}, ln))
	rig.Must(t, <-accepted)
	h.Arm(s)
	parted := partFrom(s, [2]*rig.End{ini, res}, patience, func(i int) { rig.Should(t, stacks[i].Close()) })
	if err := parted.falsehood(s); err != nil {
		t.Errorf("%v: %v", s, err)
	}
	return [2]int{h.Count(0), h.Count(1)}
}
