package iwarp_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/internal/engine"
)

// manySends are as many Sends without data, numbered from 0 on.
func manySends(n uint64) (all []iwarp.SendWR) {
	for id := range n {
		all = append(all, iwarp.SendWR{ID: id})
	}
	return all
}

// TestPostSends posts requests together, which arrive in order, and complete. One that cannot be posted ends
// the list: those before it are on their way.
func TestPostSends(t *testing.T) {
	ini, res := rig.Connect(t)
	if n, err := ini.PostSends(nil); n != 0 || err != nil {
		t.Errorf("none: %d, %v", n, err)
	}
	wrong := manySends(3)
	wrong[2].SGL = []iwarp.SGE{{Length: 1}}
	for _, c := range []struct {
		wrs   []iwarp.SendWR
		takes int
		err   error
	}{{manySends(4), 4, nil}, {wrong, 2, iwarp.ErrInvalid}} {
		for id := range c.takes {
			res.MustPostRecv(uint64(id))
		}
		if n, err := ini.PostSends(c.wrs); n != c.takes || !errors.Is(err, c.err) {
			t.Errorf("%d posted, %v, want %d, %v", n, err, c.takes, c.err)
		}
		for id := range uint64(c.takes) {
			res.WantReceived(id, iwarp.StatusSuccess)
			ini.WantSent(iwarp.OpSend, id, iwarp.StatusSuccess)
		}
	}
	rig.Finish(t, ini, res)
}

// TestPostAll posts requests that belong together, or none of them: not those before one that is wrong, or that has no
// room.
func TestPostAll(t *testing.T) {
	ini, res := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{SendDepth: 4}}}.Connect(t)
	for id := range uint64(4) {
		res.MustPostRecv(id)
	}
	wrong := manySends(4)
	wrong[3].SGL = []iwarp.SGE{{Length: 1}}
	for _, c := range []struct {
		wrs []iwarp.SendWR
		err error
	}{{manySends(5), iwarp.ErrQueueFull}, {wrong, iwarp.ErrInvalid}, {nil, nil}, {manySends(4), nil}} {
		if err := emulation.PostAll(ini.QP, &c.wrs); !errors.Is(err, c.err) {
			t.Errorf("%d requests: %v, want %v", len(c.wrs), err, c.err)
		}
		if c.err != nil && ini.Query().Sends != 0 {
			t.Errorf("%d requests are posted of those with %v", ini.Query().Sends, c.err)
		}
	}
	for id := range uint64(4) {
		res.WantReceived(id, iwarp.StatusSuccess)
		ini.WantSent(iwarp.OpSend, id, iwarp.StatusSuccess)
	}
	rig.Finish(t, ini, res)
}

// TestInlineLimit posts as much inline data as the QP takes, and one byte more.
func TestInlineLimit(t *testing.T) {
	ini, res := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{MaxInline: 10}}}.Connect(t)
	rig.WantSaid(t, "11 bytes", ini.PostSend(&iwarp.SendWR{Inline: make([]byte, 11)}),
		iwarp.ErrInvalid, "takes 10 at most")
	res.MustPostRecv(1, res.MR(10, iwarp.LocalWrite).Slice(0, 10))
	ini.MustPost(&iwarp.SendWR{ID: 1, Inline: make([]byte, 10)})
	if wc := res.WantReceived(1, iwarp.StatusSuccess); wc.Length != 10 {
		t.Errorf("%d bytes have come", wc.Length)
	}
	rig.Finish(t, ini, res)
}

// TestUnpolledCount: what is complete takes its place in the queue until it has been polled, so that no CQ overflows
// that is as deep as its queues. A queue that has ended says why, full or not.
func TestUnpolledCount(t *testing.T) {
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{RecvDepth: 2}}}.Connect(t)
	for id := range uint64(2) {
		res.MustPostRecv(id)
		ini.MustPost(&iwarp.SendWR{ID: id})
		ini.WantSent(iwarp.OpSend, id, iwarp.StatusSuccess)
	}
	rig.Must(t, res.RecvCQ().Wait(rig.Within(t)))
	rig.Until(t, func() bool { return res.Query().Receives == 0 }, "the second message")
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a third receive: %v", err)
	}
	rig.Must(t, ini.Abort())
	rig.Wait(t, res.Done(), "the end of the connection")
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("a receive at the end: %v", err)
	}
	for id := range uint64(2) {
		res.WantReceived(id, iwarp.StatusSuccess)
	}

	qp := rig.NewQP(t, res.PD, iwarp.QPConfig{RecvDepth: 1})
	rig.Must(t, qp.PostRecv(&iwarp.RecvWR{}))
	rig.Must(t, qp.Modify(iwarp.StateError)) // which flushes it
	if err := qp.PostRecv(&iwarp.RecvWR{}); err == nil || errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a receive in state Error: %v", err)
	}
	rig.Must(t, qp.Modify(iwarp.StateIdle))
	if err := qp.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a receive in state Idle, with one to be polled: %v", err)
	}
	if n := qp.RecvCQ().Poll(make([]iwarp.WC, 2)); n != 1 {
		t.Errorf("%d completions", n)
	}
	rig.Must(t, qp.PostRecv(&iwarp.RecvWR{}))
}

// TestSetPrefix has the Sends of both ends begin with bytes of the consumers' that are not for the receives' memory,
// from the next connection on.
func TestSetPrefix(t *testing.T) {
	const n = 100_000
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	for _, e := range []*rig.End{ini, res} {
		e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{})
		rig.Must(t, emulation.SetPrefix(e.QP, true))
		e.MustPostRecv(1, e.MR(n, iwarp.LocalWrite).Slice(0, n))
	}
	connectQPs(t, ini, res)
	for _, way := range [][2]*rig.End{{ini, res}, {res, ini}} {
		from, to := way[0], way[1]
		from.MustPost(&iwarp.SendWR{ID: 2, SGL: []iwarp.SGE{from.Filled(n, 1, 0).Slice(0, n)},
			Prefix: 0x0102030405060708})
		if wc := to.WantReceived(1, iwarp.StatusSuccess); wc.Length != n || wc.Prefix != 0x0102030405060708 {
			t.Errorf("%v with the prefix %#x", wc, wc.Prefix)
		}
		if wc := from.WantSent(iwarp.OpSend, 2, iwarp.StatusSuccess); wc.Length != n || wc.Prefix != 0 {
			t.Errorf("%v with the prefix %#x", wc, wc.Prefix)
		}
	}
	if err := emulation.SetPrefix(ini.QP, false); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("on a connection: %v", err)
	}
	if err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Prefix: 1}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a prefix of a Write: %v", err)
	}
	plain, _ := rig.Setup{}.Connect(t)
	if err := plain.PostSend(&iwarp.SendWR{Prefix: 1}); !errors.Is(err, engine.ErrNoPrefix) {
		t.Errorf("where Sends have none: %v", err)
	}
}

// TestPollSharesProcessor: a consumer that polls a CQ of several QPs leaves the processor to the goroutines that
// receive and send for them, even where there is no other processor.
func TestPollSharesProcessor(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	qp := rig.NewQP(t, pd, iwarp.QPConfig{})
	other := rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: qp.SendCQ(), RecvCQ: qp.RecvCQ()})
	defer func() { rig.Must(t, errors.Join(other.Close(), qp.Close())) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var ran atomic.Bool
	go ran.Store(true)
	var wc [1]iwarp.WC
	for range 1000 { // less than the time after which the scheduler takes the processor away
		if qp.SendCQ().Poll(wc[:]); ran.Load() {
			return
		}
	}
	t.Error("another goroutine did not run")
}
