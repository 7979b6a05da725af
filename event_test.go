package iwarp_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestEventsHoldNothing loses many connections whose events nobody fetches: their QPs are
// collected all the same, and the events still name them.
//
// Proves Z31.
func TestEventsHoldNothing(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	ln := rig.Listen(t, iwarp.ListenConfig{})
	var gone []weak.Pointer[iwarp.QP]
	var nums []uint32
	for range 20 {
		qp := acceptAndLose(t, ln, pd)
		gone, nums = append(gone, weak.Make(qp)), append(nums, qp.Num())
	}
	for i, p := range gone {
		for tries := 0; p.Value() != nil; tries++ {
			if tries == 1000 {
				t.Fatalf("QP %d is still there", nums[i])
			}
			runtime.GC() // its goroutines may take a moment to end
		}
	}
	for _, num := range nums {
		ev := (&rig.End{T: t, RNIC: rnic}).WantEvent(iwarp.EventConnectionLost)
		if ev.QP != nil || ev.QPNum != num || ev.RemoteAddr == nil {
			t.Errorf("event %v, of QP %d", ev, num)
		}
	}
}

// acceptAndLose has a connection come up that its peer resets, and returns its QP, closed.
func acceptAndLose(t *testing.T, ln *iwarp.Listener, pd *iwarp.PD) *iwarp.QP {
	t.Helper()
	dialed := make(chan error, 1)
	go func() {
		qp, err := iwarp.Dial(context.WithoutCancel(t.Context()), "tcp", ln.Addr().String())
		if err == nil {
			err = qp.Abort()
		}
		dialed <- err
	}()
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{PD: pd})
	rig.Must(t, err)
	rig.Must(t, <-dialed)
	rig.Wait(t, qp.Done(), "the end of the connection")
	_ = qp.Close() // which says that it was lost
	return qp
}

// TestEventsOfConnectionsDisplaceNoOthers has a Shared Receive Queue run low, twice, and
// then loses more connections than there is room for events about.
func TestEventsOfConnectionsDisplaceNoOthers(t *testing.T) {
	s := rig.NewSRQRigOn(t, rig.NewRNIC(t, iwarp.RNICConfig{EventDepth: 2}), iwarp.SRQConfig{Depth: 16, Limit: 16})
	ini, res := s.Connect(t)
	postShared(s, t, 16)
	for range 2 {
		rig.PostSmall(ini, 1)
		rig.Next(t, s.CQ)
		s.SRQ.Arm(16)
	}
	for range 5 {
		ini, res := s.Connect(t)
		_ = ini.Abort()
		_ = res.WantEnd()
	}
	ev, err := res.RNIC.NextEvent(rig.Within(t))
	if err != nil || ev.Kind != iwarp.EventSRQLimit || ev.SRQ != s.SRQ || ev.Count != 2 {
		t.Errorf("the oldest event is %v of %d (%v)", ev, ev.Count, err)
	}
}

// TestLastWQE waits for the event after which a QP takes no more of a Shared Receive
// Queue: what it has taken is in the CQ by then.
func TestLastWQE(t *testing.T) {
	t.Parallel()
	s := rig.NewSRQRig(t, iwarp.SRQConfig{})
	ini, res := s.Connect(t)
	postShared(s, t, 4)
	rig.PostSmall(ini, 3)
	_ = ini.Close()
	if ev := res.WantEvent(iwarp.EventLastWQE); ev.QP != res.QP {
		t.Errorf("event %v", ev)
	}
	var wc [8]iwarp.WC
	n := s.CQ.Poll(wc[:])
	recvs := slices.DeleteFunc(wc[:n], func(w iwarp.WC) bool { return w.Op != iwarp.OpRecv })
	if len(recvs) != 3 || s.SRQ.Query().Receives != 1 {
		t.Errorf("%d receives are complete, %d left", len(recvs), s.SRQ.Query().Receives)
	}
}

// TestEventString: an event names whom it is about, how often it came and why, as far as there is any of that.
func TestEventString(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4420}
	for want, e := range map[string]iwarp.Event{
		"close complete":               {Kind: iwarp.EventCloseComplete},
		"bad close on QP 7":            {Kind: iwarp.EventBadClose, QPNum: 7, Count: 1},
		"SRQ limit reached, 2 times":   {Kind: iwarp.EventSRQLimit, Count: 2},
		"connection lost: no such day": {Kind: iwarp.EventConnectionLost, Err: errors.New("no such day")},
		"connection lost on QP 9 with 192.0.2.1:4420, 3 times: no such day": {
			Kind: iwarp.EventConnectionLost, QPNum: 9, RemoteAddr: addr, Count: 3, Err: errors.New("no such day"),
		},
	} {
		if got := e.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
