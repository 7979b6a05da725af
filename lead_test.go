package iwarp_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// reading reports whether a consumer is in the middle of receiving for itself.
func reading() bool {
	for stack := range strings.SplitSeq(rig.Stacks(), "\n\n") {
		if strings.Contains(stack, ".ReceiveFor(") && strings.Contains(stack, "[IO wait") {
			return true
		}
	}
	return false
}

// waits reports whether a consumer waits, one way or the other.
func waits() bool {
	for stack := range strings.SplitSeq(rig.Stacks(), "\n\n") {
		if (strings.Contains(stack, ".(*CQ).Wait(") || strings.Contains(stack, ".(*call).await(")) &&
			(strings.Contains(stack, "[IO wait") || strings.Contains(stack, "[select") ||
				strings.Contains(stack, "[chan receive")) {
			return true
		}
	}
	return false
}

// queued reports whether a consumer waits that does not receive for itself.
func queued() bool {
	for stack := range strings.SplitSeq(rig.Stacks(), "\n\n") {
		if strings.Contains(stack, ".(*CQ).Wait(") && strings.Contains(stack, "[select") {
			return true
		}
	}
	return false
}

// led has a consumer wait for messages, which feed has the peer send, until it receives for
// itself. It returns what the last wait, which goes on, comes to. How many messages that takes
// is the scheduler's to say: a consumer that comes a moment early makes the next offer rarer.
func led(t *testing.T, feed, wait func() error, check func(error)) <-chan error {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the receiving goroutine always reads here")
	}
	for limit := rig.Within(t); limit.Err() == nil; {
		waiting := rig.DialInBackground(t, wait)
		rig.Until(t, func() bool { return waits() || len(waiting) > 0 }, "a consumer that waits")
		if reading() {
			return waiting
		}
		check(feed())
		check(rig.Outcome(t, waiting))
	}
	t.Fatal("no consumer receives for itself")
	return nil
}

// ledEnd is a connection at whose Responder a consumer receives for itself.
func ledEnd(ctx context.Context, t *testing.T, cfg iwarp.QPConfig) (ini, res *rig.End, waiting <-chan error) {
	t.Helper()
	ini, res = rig.Setup{Accept: iwarp.AcceptConfig{QP: cfg}}.Connect(t)
	waiting = led(t, func() error { return deliver(ini, res) }, func() error {
		_, err := res.RecvCQ().Next(ctx)
		return err
	}, func(err error) {
		if err != nil && cfg.IdleTimeout > 0 {
			t.Skip("too slow: the connection was idle before a consumer received for itself")
		}
		rig.Must(t, err)
	})
	return ini, res, waiting
}

// deliver has an empty message go from one end to the other.
func deliver(from, to *rig.End) error {
	return errors.Join(to.PostRecv(&iwarp.RecvWR{ID: 1}), from.PostSend(&iwarp.SendWR{Unsignaled: true}))
}

// TestLeadEnds ends the wait of a consumer that receives for itself, in each way there is. It is not parallel: while
// others keep the processors busy a consumer receives for itself only after many rounds, each of which stops the
// program to look at all stacks.
func TestLeadEnds(t *testing.T) {
	type scene struct {
		*testing.T
		ini, res *rig.End // res waits
		cancel   func()
	}
	for _, c := range []struct {
		name string
		end  func(scene)
		want error
		cfg  iwarp.QPConfig
		live bool // the connection goes on
	}{
		{name: "a message", live: true, end: func(s scene) { rig.Must(s, deliver(s.ini, s.res)) }},
		{name: "the context", live: true, want: context.Canceled, end: func(s scene) { s.cancel() }},
		{name: "a completion of what another goroutine posts", live: true,
			end: func(s scene) { s.res.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite}) }},
		{name: "a completion of another QP", live: true, end: func(s scene) {
			qp, err := s.res.PD.CreateQP(iwarp.QPConfig{SendCQ: s.res.RecvCQ()})
			rig.Must(s, err)
			rig.Must(s, qp.PostRecv(&iwarp.RecvWR{ID: 1}))
			rig.Should(s, qp.Close())
		}},
		{name: "Abort", want: iwarp.ErrClosed, end: func(s scene) { _ = s.res.Abort() }},
		{name: "Close", want: iwarp.ErrClosed, end: func(s scene) { go s.ini.Close(); rig.Should(s, s.res.Close()) }},
		{name: "Close by the peer", want: iwarp.ErrClosed, end: func(s scene) { rig.Should(s, s.ini.Close()) }},
		{name: "Abort by the peer", want: iwarp.ErrClosed, end: func(s scene) { _ = s.ini.Abort() }},
		{name: "Modify", want: iwarp.ErrClosed, end: func(s scene) { rig.Must(s, s.res.Modify(iwarp.StateError)) }},
		{name: "an error of the peer's", want: iwarp.ErrClosed, end: func(s scene) {
			s.ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte{1}, Remote: iwarp.Remote{STag: 12345}})
		}},
		{name: "a Terminate", want: iwarp.ErrClosed,
			end: func(s scene) { rig.Must(s, s.ini.Modify(iwarp.StateTerminate)) }},
		{name: "IdleTimeout", want: iwarp.ErrClosed,
			cfg: iwarp.QPConfig{IdleTimeout: 500 * time.Millisecond}, end: func(scene) {}},
		{name: "Shutdown", want: iwarp.ErrClosed, end: func(s scene) {
			rig.Should(s,
				s.res.RNIC.Shutdown(rig.Within(s)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ini, res, waiting := ledEnd(ctx, t, c.cfg)
			c.end(scene{t, ini, res, cancel})
			if err := rig.Outcome(t, waiting); !errors.Is(err, c.want) {
				t.Errorf("the wait ended with %v, want %v", err, c.want)
			}
			if !c.live {
				rig.Wait(t, res.Done(), "the end of the connection")
				return
			}
			rig.Works(t, ini, res)
			rig.Finish(t, ini, res)
		})
	}
}

// TestLeadServes has a consumer that receives for itself carry out what comes for others: Writes,
// Reads of the peer's, and completions for another CQ. Memory is deregistered meanwhile.
func TestLeadServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ini, res, waiting := ledEnd(ctx, t, iwarp.QPConfig{})
	const n = 300_000
	src, back, away := ini.Filled(n, 3, iwarp.LocalWrite), ini.MR(n, iwarp.LocalWrite),
		res.MR(n, iwarp.RemoteWrite|iwarp.RemoteRead)
	for range 3 {
		rig.WriteAndRead(t, ini, src, back, away)
	}
	gone := res.MR(8, iwarp.RemoteWrite)
	rig.Must(t, gone.Deregister())
	// The Responder reads, and the Response reaches its caller by way of the consumer.
	sink, far := res.MR(n, iwarp.LocalWrite), ini.Filled(n, 9, iwarp.RemoteRead)
	if _, err := res.Read(rig.Within(t), sink.Slice(0, n), far.Remote(0)); err != nil {
		t.Fatal(err)
	}
	rig.Same(t, "Read", sink, far)
	rig.Until(t, reading, "the consumer to go on receiving")
	cancel()
	if err := rig.Outcome(t, waiting); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	rig.Finish(t, ini, res)
}

// TestLeadCalls has the one-call forms receive for themselves, and give up with their context.
func TestLeadCalls(t *testing.T) {
	res, p := rig.RespondToPeer(t, patient())
	dst := res.MR(8, iwarp.LocalWrite)
	ctx, cancel := context.WithCancel(t.Context())
	msn := uint32(1)
	waiting := led(t, func() error {
		p.Send(p.Message(rdmap.OpSend, msn, []byte("hello")))
		msn++
		return nil
	}, func() error {
		wc, err := res.Recv(ctx, dst.Slice(0, 8))
		if err == nil && wc.Length != 5 {
			t.Errorf("received %d bytes", wc.Length)
		}
		return err
	}, func(err error) { rig.Must(t, err) })
	cancel()
	if err := rig.Outcome(t, waiting); !errors.Is(err, context.Canceled) || errors.As(err, new(*iwarp.PendingError)) {
		t.Error(err)
	}
	// Nobody is there now: the receiving goroutine finds what is wrong with the next one.
	p.Send(p.Message(rdmap.OpSend, msn-1, []byte("hello")))
	p.WantTerminate(rdmap.CodeDDPInvalidMSNRange)
	_ = res.Abort()
}

// TestLeadLeaves has a consumer come back so steadily that nothing keeps watch between its waits,
// and then stay away: the peer's Reads are answered all the same.
func TestLeadLeaves(t *testing.T) {
	ini, res := rig.Connect(t)
	src := res.Filled(8, 5, iwarp.RemoteRead)
	sink := ini.MR(8, iwarp.LocalWrite)
	for range 3 {
		var echo sync.WaitGroup
		const n = 500
		for range 2 {
			res.MustPostRecv(1)
		}
		ini.MustPostRecv(1)
		echo.Go(func() {
			for range n {
				res.WantReceived(1, iwarp.StatusSuccess)
				res.MustPostRecv(1)
				res.MustPost(&iwarp.SendWR{Unsignaled: true})
			}
		})
		for range n {
			ini.MustPost(&iwarp.SendWR{Unsignaled: true})
			ini.WantReceived(1, iwarp.StatusSuccess)
			ini.MustPostRecv(1)
		}
		echo.Wait()
		for range 3 {
			_, err := ini.Read(rig.Within(t), sink.Slice(0, 8), src.Remote(0))
			rig.Must(t, err)
		}
	}
	rig.Same(t, "Read", sink, src)
	rig.Finish(t, ini, res)
}

// TestLeadWaiters has several goroutines wait for the two CQs of a QP, some of them with
// contexts that end all the time, while messages, Writes and Reads go both ways; then one end is
// closed in the middle. Each message completes once, and every wait ends.
func TestLeadWaiters(t *testing.T) {
	const messages, depth = 2000, 16
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	sends, recvs := rig.NewCQ(t, rnic, 256), rig.NewCQ(t, rnic, 256)
	cfg := iwarp.QPConfig{SendCQ: sends, RecvCQ: recvs, SendDepth: 64, RecvDepth: 64,
		IdleTimeout: rig.Soon, CloseTimeout: rig.Soon}
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic), QP: cfg}}.Connect(t)
	mem := res.MR(4096, iwarp.RemoteWrite|iwarp.RemoteRead)
	var got, sent atomic.Int64
	var all sync.WaitGroup
	consume := func(cq *iwarp.CQ, count *atomic.Int64, impatient bool, then func(iwarp.WC)) {
		all.Go(func() {
			var wc [4]iwarp.WC
			for {
				ctx, cancel := t.Context(), func() {}
				if impatient {
					ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
				}
				err := cq.Wait(ctx)
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					if !errors.Is(err, iwarp.ErrNoQP) {
						t.Error(err)
					}
					return
				}
				for i := range cq.Poll(wc[:]) {
					if wc[i].Status == iwarp.StatusSuccess {
						count.Add(1)
						then(wc[i])
					}
				}
			}
		})
	}
	for range depth {
		res.MustPostRecv(0)
	}
	credits := make(chan struct{}, depth)
	for range depth {
		credits <- struct{}{}
	}
	for i := range 3 {
		consume(recvs, &got, i == 2, func(iwarp.WC) {
			_ = res.PostRecv(&iwarp.RecvWR{})
			credits <- struct{}{}
		})
		consume(sends, &sent, i == 2, func(iwarp.WC) {})
	}
	all.Go(func() {
		for n := range messages {
			if n%10 == 0 {
				for res.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite}) != nil && res.State() == iwarp.StateRTS {
					runtime.Gosched()
				}
			}
			<-credits
			rig.Should(t, ini.Send(rig.Within(t), iwarp.SGE{}))
		}
	})
	all.Go(func() {
		buf := ini.MR(4096, iwarp.LocalWrite)
		for range messages / 10 {
			_, err := ini.Write(rig.Within(t), buf.Slice(0, 4096), mem.Remote(0))
			rig.Should(t, err)
			_, err = ini.Read(rig.Within(t), buf.Slice(0, 4096), mem.Remote(0))
			rig.Should(t, err)
		}
	})
	rig.Until(t, func() bool { return got.Load() == messages && sent.Load() == messages/10 }, "all completions")
	_ = res.Close()
	_ = ini.Close()
	rig.Must(t, rig.Outcome(t, rig.DialInBackground(t, func() error { all.Wait(); return nil })))
}

// TestLeadAndAnother has one consumer receive for itself, and another wait for the same CQ with a
// context that ends just as a message comes: one of the two gets the message.
func TestLeadAndAnother(t *testing.T) {
	ini, res, leader := ledEnd(t.Context(), t, iwarp.QPConfig{})
	next := func(ctx context.Context) <-chan error {
		return rig.DialInBackground(t, func() error { _, err := res.RecvCQ().Next(ctx); return err })
	}
	for i := range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		other := next(ctx)
		rig.Until(t, queued, "the other consumer")
		go func() {
			for range i % 25 {
				runtime.Gosched()
			}
			cancel()
		}()
		rig.Must(t, deliver(ini, res))
		if err := rig.Outcome(t, other); err != nil {
			rig.Must(t, rig.Outcome(t, leader))
			leader = next(t.Context())
		}
	}
	rig.Must(t, deliver(ini, res))
	rig.Must(t, rig.Outcome(t, leader))
	rig.Finish(t, ini, res)
}

// TestLeadNextConnection has a consumer receive for itself on a connection, and then on the next one
// of the same QP.
func TestLeadNextConnection(t *testing.T) {
	ini, res, leader := ledEnd(t.Context(), t, iwarp.QPConfig{})
	rig.Must(t, deliver(ini, res))
	rig.Must(t, rig.Outcome(t, leader))
	rig.EndInOrder(t, ini, res)
	connectQPs(t, ini, res)
	leader = led(t, func() error { return deliver(ini, res) }, func() error {
		_, err := res.RecvCQ().Next(t.Context())
		return err
	}, func(err error) { rig.Must(t, err) })
	rig.Must(t, deliver(ini, res))
	rig.Must(t, rig.Outcome(t, leader))
	rig.Finish(t, ini, res)
}
