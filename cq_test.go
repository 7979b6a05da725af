package iwarp_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
)

// receiver is a connection whose Responder's completions go to a CQ.
func receiver(t testing.TB, rnic *iwarp.RNIC, cq *iwarp.CQ, depth int) (ini, res *rig.End) {
	t.Helper()
	return rig.Setup{Accept: iwarp.AcceptConfig{
		PD: rig.NewPD(t, rnic), QP: iwarp.QPConfig{RecvCQ: cq, SendCQ: cq, SendDepth: depth, RecvDepth: depth},
	}}.Connect(t)
}

// receives has empty Sends complete n receives.
func receives(ini, res *rig.End, n int, solicited bool) {
	ini.T.Helper()
	for range n {
		res.MustPostRecv(1)
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true, Solicited: solicited})
	}
}

// TestCQWaiters has several goroutines wait for one CQ, each of which polls one
// completion: all are woken.
func TestCQWaiters(t *testing.T) {
	const waiters, each = 8, 50
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 64)
	ini, res := receiver(t, rnic, cq, 32)
	ctx := rig.Within(t)
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			var wc [1]iwarp.WC
			for got := 0; got < each; {
				if err := cq.Wait(ctx); err != nil {
					t.Error(err)
					return
				}
				got += cq.Poll(wc[:])
			}
		})
	}
	for range waiters * each {
		rig.Until(t, func() bool { return res.PostRecv(&iwarp.RecvWR{}) == nil }, "room for a receive")
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
	}
	all.Wait()
}

// TestCQWaitEnds ends waiting by the context and by closing the CQ.
func TestCQWaitEnds(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 4)
	ctx, cancel := context.WithCancel(t.Context())
	given := rig.DialInBackground(t, func() error { return cq.Wait(ctx) })
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waiting := make([]<-chan error, 3)
	for i := range waiting {
		waiting[i] = rig.DialInBackground(t, func() error { return cq.Wait(rig.Within(t)) })
	}
	rig.Should(t, cq.Close())
	for _, w := range waiting {
		if err := <-w; !errors.Is(err, iwarp.ErrClosed) {
			t.Error(err)
		}
	}
	if _, err := rig.NewPD(t, rnic).CreateQP(iwarp.QPConfig{SendCQ: cq}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("a QP with a closed CQ: %v", err)
	}
}

// TestDisarm: who has completions of its own uses up what was asked for, as those of the CQ do.
func TestDisarm(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 64)
	ini, res := receiver(t, rnic, cq, 16)
	disarmed := func(solicited, want bool, what string) {
		t.Helper()
		if got := emulation.Disarm(cq, solicited); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	disarmed(true, false, "nobody has asked")
	cq.Arm(false)
	disarmed(false, true, "of any")
	disarmed(true, false, "again")
	cq.Arm(true)
	disarmed(false, false, "of one that is not solicited")
	disarmed(true, true, "of one that is")
	receives(ini, res, 1, true)
	rig.Next(t, cq)
	select {
	case <-cq.Events():
		t.Error("a notice that was taken back")
	default:
	}
	cq.Arm(false)
	receives(ini, res, 1, false)
	<-cq.Events()
	if n := emulation.Waiting(cq); n != 1 {
		t.Errorf("%d completions are there", n)
	}
	rig.Next(t, cq)
	disarmed(true, false, "what gave a notice")
}

// TestForget drops completions of some QPs. The others stay, in order, and so do the places of their requests.
func TestForget(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 8)
	var ends [2]*rig.End
	for i := range ends {
		_, ends[i] = rig.Setup{Accept: iwarp.AcceptConfig{
			PD: rig.NewPD(t, rnic), QP: iwarp.QPConfig{RecvCQ: cq, SendCQ: cq, UserData: i},
		}}.Connect(t)
	}
	for id := range uint64(6) {
		ends[id%2].MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpWrite})
		rig.Until(t, func() bool { return emulation.Waiting(cq) == int(id)+1 }, "the completion")
	}
	emulation.Forget(cq, 0)
	for i, places := range []int{0, 3} {
		if n := ends[i].QP.Query().UnpolledSends; n != places {
			t.Errorf("QP %d keeps %d places, want %d", i, n, places)
		}
	}
	for _, id := range []uint64{1, 3, 5} {
		if wc := rig.Next(t, cq); wc.ID != id {
			t.Errorf("completion %d, want %d", wc.ID, id)
		}
	}
	if n := emulation.Waiting(cq); n != 0 {
		t.Errorf("%d completions are left", n)
	}
}

// TestArm asks for a notice of the next completion, and of the next that the peer
// solicits. Each request gives one.
//
// Proves P33.
func TestArm(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 64)
	ini, res := receiver(t, rnic, cq, 16)
	polled := func(n int) {
		t.Helper()
		for range n {
			rig.Next(t, cq)
		}
	}
	noticed := func(want bool, what string) {
		t.Helper()
		select {
		case <-cq.Events():
			if !want {
				t.Errorf("a notice of %s", what)
			}
		default:
			if want {
				t.Errorf("no notice of %s", what)
			}
		}
	}
	receives(ini, res, 1, true)
	polled(1)
	noticed(false, "a completion that nobody asked for")

	cq.Arm(false)
	receives(ini, res, 2, false)
	polled(2)
	noticed(true, "the next completion")
	noticed(false, "the one after it")

	cq.Arm(true)
	receives(ini, res, 3, false)
	polled(3)
	noticed(false, "completions that were not solicited")
	receives(ini, res, 1, true)
	polled(1)
	noticed(true, "a solicited completion")

	cq.Arm(false)
	cq.Arm(true) // does not weaken the first
	receives(ini, res, 1, false)
	polled(1)
	noticed(true, "the next completion")

	cq.Arm(true)
	res.MustPostRecv(1)
	_ = res.Abort()
	polled(1)
	noticed(true, "an error")
}

// TestCQOverflow overflows a CQ: the QPs that use it are lost, and told why; all
// others go on.
//
// Proves Z25, Z24, Z23.
func TestCQOverflow(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	small := rig.NewCQ(t, rnic, 2)
	ini, victim := receiver(t, rnic, small, 8)
	_, other := receiver(t, rnic, small, 8)
	good, bystander := receiver(t, rnic, rig.NewCQ(t, rnic, 16), 8)
	if small.Committed() <= small.Depth() {
		t.Errorf("%d completions committed to a CQ of %d", small.Committed(), small.Depth())
	}
	small.Arm(true)
	receives(ini, victim, 3, false)
	select {
	case <-small.Events(): // not of the Sends, which were not solicited
	case <-rig.Within(t).Done():
		t.Error("no notice")
	}
	for _, lost := range []*rig.End{victim, other} {
		if err := lost.WantEnd(); !errors.Is(err, iwarp.ErrCQOverflow) {
			t.Errorf("a QP of the CQ ended with %v", err)
		}
		if s := lost.State(); s != iwarp.StateError {
			t.Errorf("state %v", s)
		}
	}
	ev := victim.WantEvent(iwarp.EventCQOverflow)
	if ev.CQ != small || !errors.Is(ev.Err, iwarp.ErrCQOverflow) {
		t.Errorf("event %+v", ev)
	}
	if got, want := ev.String(), "CQ overflow of CQ (2 of 2 completions, 2 QPs, overflowed): poll it, or create it deeper"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	var wc [4]iwarp.WC
	if n := small.Poll(wc[:]); n != 2 {
		t.Errorf("%d completions are left", n)
	}
	_, another := victim.PD.CreateQP(iwarp.QPConfig{SendCQ: small})
	for what, err := range map[string]error{"Wait": small.Wait(rig.Within(t)), "another QP with the CQ": another,
		"Resize": small.Resize(16)} {
		rig.WantSaid(t, what, err, iwarp.ErrCQOverflow, "create another")
		rig.WantSaid(t, what, err, iwarp.ErrClosed)
	}
	rig.Works(t, good, bystander)
}

// TestCommitted sizes a shared CQ by what is tied to it: then whatever the peers
// and the consumer do, it does not overflow.
//
// Proves Z24, Z23.
func TestCommitted(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	const depth = 4
	cq := rig.NewCQ(t, rnic, 2*2*depth)
	ini1, res1 := receiver(t, rnic, cq, depth)
	ini2, res2 := receiver(t, rnic, cq, depth)
	if cq.Committed() != cq.Depth() {
		t.Fatalf("%d committed, depth %d", cq.Committed(), cq.Depth())
	}
	for _, pair := range [][2]*rig.End{{ini1, res1}, {ini2, res2}} {
		receives(pair[0], pair[1], depth, true)
		for pair[1].PostSend(&iwarp.SendWR{Op: iwarp.OpWrite}) == nil {
		}
		if err := pair[1].PostRecv(&iwarp.RecvWR{}); err == nil {
			rig.Until(t, func() bool { return pair[1].PostRecv(&iwarp.RecvWR{}) != nil }, "a full queue")
		}
	}
	rig.Until(t, func() bool {
		return res1.Query().Receives+res1.Query().Sends+res2.Query().Receives+res2.Query().Sends == 0
	}, "all completions")
	wc := make([]iwarp.WC, 100)
	if n := cq.Poll(wc); n != cq.Depth() {
		t.Errorf("%d completions, want %d", n, cq.Depth())
	}
	if res1.State() != iwarp.StateRTS || res2.State() != iwarp.StateRTS {
		t.Errorf("%v, %v", res1.Err(), res2.Err())
	}
}

// TestCQOwner ties QPs only to CQs of their own RNIC.
//
// Proves Z26, Z02.
func TestCQOwner(t *testing.T) {
	mine, theirs := rig.NewRNIC(t, iwarp.RNICConfig{}), rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, theirs, 4)
	pd := rig.NewPD(t, mine)
	for _, cfg := range []iwarp.QPConfig{{SendCQ: cq}, {RecvCQ: cq}, {SendCQ: rig.NewCQ(t, mine, 4), RecvCQ: cq}} {
		if _, err := pd.CreateQP(cfg); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
	if s := mine.Stats(); s.QPs != 0 || s.WorkRequests != 0 {
		t.Errorf("left over: %+v", s)
	}
	qp, err := pd.CreateQP(iwarp.QPConfig{SendCQ: rig.NewCQ(t, mine, 4)})
	rig.Must(t, err)
	if err := qp.SendCQ().Close(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Close of a CQ in use: %v", err)
	}
	rig.Should(t, qp.Close())
	rig.Should(t, qp.SendCQ().Close())
}

// TestCQDepth refuses depths that make no sense, and no others.
func TestCQDepth(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	for _, depth := range []int{1, rnic.Query().MaxCQDepth} {
		if cq, err := rnic.CreateCQ(depth); err != nil || cq.Depth() != depth {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
	for _, depth := range []int{-1, 0, rnic.Query().MaxCQDepth + 1} {
		if _, err := rnic.CreateCQ(depth); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// TestNext takes completions one by one, and waits for one where there is none. What
// is there is given even if the context is over.
func TestNext(t *testing.T) {
	ini, res := rig.Connect(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if wc, err := res.RecvCQ().Next(gone); !errors.Is(err, context.Canceled) || wc.QP != nil {
		t.Errorf("%+v, %v", wc, err)
	}
	res.MustPostRecv(1)
	res.MustPostRecv(2)
	for range 2 {
		ini.MustPost(&iwarp.SendWR{Unsignaled: true})
	}
	for id := range uint64(2) {
		if wc, err := res.RecvCQ().Next(rig.Within(t)); err != nil || wc.ID != id+1 {
			t.Fatalf("%+v, %v", wc, err)
		}
	}
	res.MustPostRecv(3)
	ini.MustPost(&iwarp.SendWR{})
	rig.Must(t, res.RecvCQ().Wait(rig.Within(t)))
	if wc, err := res.RecvCQ().Next(gone); err != nil || wc.ID != 3 {
		t.Errorf("%+v, %v", wc, err)
	}
}

// TestWaitForDeadQPs waits on a CQ as its QPs end one by one: as long as one of them can
// still bring a completion, there is something to wait for, and not after that.
func TestWaitForDeadQPs(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 1024)
	shared := rig.Setup{Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic), QP: iwarp.QPConfig{SendCQ: cq, RecvCQ: cq}}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantWait := func(want error) {
		t.Helper()
		if err := cq.Wait(over); !errors.Is(err, want) {
			t.Errorf("Wait: %v, want %v", err, want)
		}
	}
	wantWait(context.Canceled) // QPs may come
	a, _ := shared.Connect(t)
	b, peer := shared.Connect(t)
	_ = a.Abort()
	wantWait(context.Canceled)
	waiting := make(chan error, 3)
	for range cap(waiting) {
		go func() { waiting <- cq.Wait(rig.Within(t)) }()
	}
	_ = peer.Abort()
	for range cap(waiting) {
		if err := <-waiting; !errors.Is(err, iwarp.ErrNoQP) || !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("waited for %v", err)
		}
	}
	wantWait(iwarp.ErrNoQP)
	rig.Must(t, b.Modify(iwarp.StateIdle))
	wantWait(context.Canceled)
	b.MustPostRecv(1)
	_ = b.Close()
	if err := cq.Wait(over); err != nil {
		t.Errorf("with a completion to poll: %v", err)
	}
	var wc [2]iwarp.WC
	if n := cq.Poll(wc[:]); n != 1 || !errors.Is(wc[0].Err(), iwarp.ErrClosed) {
		t.Errorf("%d completions: %v", n, wc[0].Err())
	}
	wantWait(iwarp.ErrNoQP)
}
