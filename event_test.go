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
)

// TestEventsHoldNothing loses many connections whose events nobody fetches: their QPs are
// collected all the same, and the events still name them.
//
// Proves Z31.
func TestEventsHoldNothing(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	ln := listen(t, iwarp.ListenConfig{})
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
		ev := (&end{t: t, rnic: rnic}).wantEvent(iwarp.EventConnectionLost)
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
	req, err := ln.Accept(within(t))
	must(t, err)
	qp, err := req.Accept(within(t), iwarp.AcceptConfig{PD: pd})
	must(t, err)
	must(t, <-dialed)
	wait(t, qp.Done(), "the end of the connection")
	_ = qp.Close() // which says that it was lost
	return qp
}

// TestEventsOfConnectionsDisplaceNoOthers has a Shared Receive Queue run low, twice, and
// then loses more connections than there is room for events about.
func TestEventsOfConnectionsDisplaceNoOthers(t *testing.T) {
	s := newSharedOn(t, newRNIC(t, iwarp.RNICConfig{EventDepth: 2}), iwarp.SRQConfig{Depth: 16, Limit: 16})
	ini, res := s.connect(t)
	s.post(t, 16)
	for range 2 {
		sends(ini, 1)
		next(t, s.cq)
		s.srq.Arm(16)
	}
	for range 5 {
		ini, res := s.connect(t)
		_ = ini.Abort()
		_ = res.wantEnd()
	}
	ev, err := res.rnic.NextEvent(within(t))
	if err != nil || ev.Kind != iwarp.EventSRQLimit || ev.SRQ != s.srq || ev.Count != 2 {
		t.Errorf("the oldest event is %v of %d (%v)", ev, ev.Count, err)
	}
}

// TestLastWQE waits for the event after which a QP takes no more of a Shared Receive
// Queue: what it has taken is in the CQ by then.
func TestLastWQE(t *testing.T) {
	t.Parallel()
	s := newShared(t, iwarp.SRQConfig{})
	ini, res := s.connect(t)
	s.post(t, 4)
	sends(ini, 3)
	_ = ini.Close()
	if ev := res.wantEvent(iwarp.EventLastWQE); ev.QP != res.QP {
		t.Errorf("event %v", ev)
	}
	var wc [8]iwarp.WC
	n := s.cq.Poll(wc[:])
	recvs := slices.DeleteFunc(wc[:n], func(w iwarp.WC) bool { return w.Op != iwarp.OpRecv })
	if len(recvs) != 3 || s.srq.Len() != 1 {
		t.Errorf("%d receives are complete, %d left", len(recvs), s.srq.Len())
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
