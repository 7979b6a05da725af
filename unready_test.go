package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// overLayers leads a dialogue over each lower layer, between ends of which the Responder has a configuration. Time is virtual, and
// passes by an hour, but over the kernel's TCP.
func overLayers(t *testing.T, cfg iwarp.QPConfig, f func(t *testing.T, ini, res *end, passHour func())) {
	t.Run("TCP", func(t *testing.T) {
		ini, res := setup{accept: iwarp.AcceptConfig{QP: cfg}}.connect(t)
		f(t, ini, res, func() {})
	})
	virtual := func(name string, connect func(t *testing.T) (ini, res *end)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ini, res := connect(t)
				f(t, ini, res, func() { time.Sleep(time.Hour) })
			})
		})
	}
	virtual("pipe", func(t *testing.T) (ini, res *end) {
		return setup{pipe: true, accept: iwarp.AcceptConfig{QP: cfg}}.connect(t)
	})
	virtual("ahead of order", func(t *testing.T) (ini, res *end) {
		a, b := awarePair(anyOrder)
		ini, res = newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
		res.QP = create(t, res.pd, cfg)
		ini.over(a, mpa.RoleInitiator)
		res.over(b, mpa.RoleResponder)
		return ini, res
	})
	virtual("SCTP", func(t *testing.T) (ini, res *end) {
		return newLinkedPair(t, testrig.Link{Delay: time.Millisecond}).connect(cfg)
	})
}

// TestUnready has Sends wait for receives, over each lower layer. A Write and a Read after them wait with them, so that the Read has what
// a Send has brought; a Read of the other end's completes.
//
// Proves D26, P40.
func TestUnready(t *testing.T) {
	overLayers(t, iwarp.QPConfig{Unready: iwarp.Unready{Octets: 1 << 20}}, func(t *testing.T, ini, res *end, passHour func()) {
		const n = 3000
		ctx, src := t.Context(), ini.filled(n, 1, iwarp.LocalWrite|iwarp.RemoteRead)
		first, written := res.mr(n, iwarp.LocalWrite|iwarp.RemoteRead), res.mr(n, iwarp.RemoteWrite)
		for range 5 {
			must(t, ini.Send(ctx, src.Slice(0, n)))
		}
		_, err := ini.Write(ctx, src.Slice(0, n), written.Remote(0))
		must(t, err)
		sink, read := ini.mr(n, iwarp.LocalWrite), make(chan error, 1)
		go func() {
			_, err := ini.Read(ctx, sink.Slice(0, n), first.Remote(0))
			read <- err
		}()
		back := res.mr(n, iwarp.LocalWrite)
		_, err = res.Read(ctx, back.Slice(0, n), src.Remote(0))
		must(t, err)
		same(t, "Read", back, src)
		passHour()
		for id := range uint64(5) {
			to := first
			if id > 0 {
				to = res.mr(n, iwarp.LocalWrite)
			}
			res.postRecv(id, to.Slice(0, n))
			if wc := res.wantReceived(id, iwarp.StatusSuccess); wc.Length != n {
				t.Errorf("%d octets", wc.Length)
			}
			same(t, "Send", to, src)
		}
		must(t, <-read)
		same(t, "Read after Sends", sink, src)
		same(t, "Write after Sends", written, src)
		works(t, ini, res)
		finish(t, ini, res)
	})
}

// TestUnreadyBound has far more sent than may wait: the peer is held back, and everything comes when there are receives.
func TestUnreadyBound(t *testing.T) {
	const n, messages, waiting = 10_000, 300, 8
	cfg := iwarp.QPConfig{Unready: iwarp.Unready{Messages: waiting}}
	overLayers(t, cfg, func(t *testing.T, ini, res *end, passHour func()) {
		src := ini.filled(n, 1, 0)
		sent := make(chan error, 1)
		go func() {
			for range messages {
				if err := ini.Send(t.Context(), src.Slice(0, n)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		received := func() uint64 { return res.Stats().Received[rdmap.OpSend].Messages }
		// Not all that wait need be Sends: an Initiator that hears nothing sends empty Writes.
		until(t, func() bool { return received() >= waiting/2 }, "messages wait")
		passHour()
		if err := ini.Err(); err != nil {
			t.Fatal(err)
		}
		if got := received(); got > messages/2 {
			t.Errorf("%d messages were received, and %d may wait", got, waiting)
		}
		to := res.mr(n, iwarp.LocalWrite)
		for id := range uint64(messages) {
			res.postRecv(id, to.Slice(0, n))
			res.wantReceived(id, iwarp.StatusSuccess)
			same(t, "Send", to, src)
		}
		must(t, <-sent)
		finish(t, ini, res)
	})
}

// TestUnreadyEnd: the peer closes in order after Sends that wait. They are received, and then the end is told.
func TestUnreadyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{Unready: iwarp.Unready{Messages: 5}}}}.connect(t)
		for range 4 {
			must(t, ini.Send(t.Context(), iwarp.SGE{}))
		}
		must(t, ini.CloseWrite())
		time.Sleep(time.Hour)
		for id := range uint64(4) {
			if s := res.State(); s != iwarp.StateRTS {
				t.Fatalf("%v", s)
			}
			res.postRecv(id)
			res.wantReceived(id, iwarp.StatusSuccess)
		}
		res.wantEvent(iwarp.EventHalfClosed)
		finish(t, ini, res)
	})
}

// TestUnreadyShared: QPs whose Sends wait for a Shared Receive Queue get what is posted to it, each as much as it needs. One that holds its
// share loses its connection.
func TestUnreadyShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := newEnd(t, iwarp.RNICConfig{})
		srq, err := res.pd.CreateSRQ(iwarp.SRQConfig{PerQP: 2})
		must(t, err)
		cq, err := res.rnic.CreateCQ(100)
		must(t, err)
		join := func() (ini *end) {
			a, b := awarePair(link{emss: 1420})
			ini = newEnd(t, iwarp.RNICConfig{})
			its := &end{t: t, rnic: res.rnic, pd: res.pd}
			its.QP = create(t, res.pd, iwarp.QPConfig{SRQ: srq, RecvCQ: cq, Unready: iwarp.Unready{Messages: 10}})
			ini.over(a, mpa.RoleInitiator)
			its.over(b, mpa.RoleResponder)
			return ini
		}
		one, other := join(), join()
		for range 3 {
			must(t, one.Send(t.Context(), iwarp.SGE{}))
			must(t, other.Send(t.Context(), iwarp.SGE{}))
		}
		synctest.Wait()
		for id := range uint64(6) {
			must(t, srq.PostRecv(&iwarp.RecvWR{ID: id}))
			if wc := next(t, cq); wc.ID != id || wc.Status != iwarp.StatusSuccess {
				t.Fatalf("%v", &wc)
			}
		}
		for range 3 { // a share of two, as nothing is polled
			must(t, srq.PostRecv(&iwarp.RecvWR{}))
			must(t, one.Send(t.Context(), iwarp.SGE{}))
		}
		synctest.Wait()
		if err := one.Err(); !contains(err, "no buffer") {
			t.Errorf("%v", err)
		}
	})
}

// TestUnreadySharedByAll: a Shared Receive Queue without shares has each QP wait, whatever it holds of it.
func TestUnreadySharedByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := newEnd(t, iwarp.RNICConfig{})
		srq, err := res.pd.CreateSRQ(iwarp.SRQConfig{})
		must(t, err)
		ini, res := setup{pipe: true, accept: iwarp.AcceptConfig{PD: res.pd, QP: iwarp.QPConfig{SRQ: srq, Unready: iwarp.Unready{Messages: 10}}}}.connect(t)
		for id := range uint64(3) {
			must(t, ini.Send(t.Context(), iwarp.SGE{}))
			synctest.Wait()
			must(t, srq.PostRecv(&iwarp.RecvWR{ID: id}))
			res.wantReceived(id, iwarp.StatusSuccess)
		}
	})
}

// TestUnreadyGoesOnAtOnce: when a receive is posted, a peer that was held back is heard in that moment.
func TestUnreadyGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{Unready: iwarp.Unready{Messages: 2}}}}.connect(t)
		for range 4 { // of which the last two are not received
			ini.post(&iwarp.SendWR{Op: iwarp.OpSend})
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		began := time.Now()
		for id := range uint64(4) {
			res.postRecv(id)
			res.wantReceived(id, iwarp.StatusSuccess)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		finish(t, ini, res)
	})
}

// TestUnreadyConfig refuses bounds that are none.
func TestUnreadyConfig(t *testing.T) {
	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	for _, u := range []iwarp.Unready{{Octets: -1}, {Messages: -1}} {
		if _, err := pd.CreateQP(iwarp.QPConfig{Unready: u}); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", u, err)
		}
	}
}
