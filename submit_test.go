package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// Requests that find the Send Queue full wait for room, and go out in the order of the calls.
func TestSubmitWaitsForRoom(t *testing.T) {
	t.Parallel()
	s := receiving(iwarp.Receives{Count: 4, Size: 8})
	s.Dialer.QP.SendDepth = 2
	ini, res := s.Connect(t)
	const n = 50
	mr := ini.MR(n, 0)
	for i := range n {
		mr.Bytes()[i] = byte(i)
	}
	var all []*iwarp.Pending
	received := make(chan []byte)
	go func() {
		var got []byte
		for m, err := range res.Messages(rig.Within(t)) {
			rig.Should(t, err)
			if got = append(got, m.Bytes()...); len(got) == n {
				break
			}
		}
		received <- got
	}()
	for i := range n {
		p, err := ini.Submit(rig.Within(t), &iwarp.SendWR{ID: uint64(i), SGL: []iwarp.SGE{mr.Slice(i, 1)}})
		rig.Must(t, err)
		all = append(all, p)
	}
	for i, p := range all {
		for range 2 { // a completion can be asked for again
			if wc, err := p.Wait(rig.Within(t)); err != nil || wc.ID != uint64(i) || wc.Length != 1 {
				t.Fatalf("request %d: %+v, %v", i, wc, err)
			}
		}
	}
	for i, b := range <-received {
		if b != byte(i) {
			t.Fatalf("message %d is that of call %d", i, b)
		}
	}
}

// Calls that wait for room go out in the order in which they began, whichever way they were made.
func TestCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		ctx, ini := t.Context(), rig.NewEnd(t, iwarp.RNICConfig{})
		mr, qp := ini.MR(n, 0), rig.NewQP(t, ini.PD, iwarp.QPConfig{SendDepth: 1})
		for i := range n {
			mr.Bytes()[i] = byte(i)
			go func() {
				if i%2 == 0 {
					rig.Should(t, qp.Send(ctx, mr.Slice(i, 1)))
					return
				}
				_, err := qp.Submit(ctx, &iwarp.SendWR{SGL: []iwarp.SGE{mr.Slice(i, 1)}})
				rig.Should(t, err)
			}()
			synctest.Wait()
		}
		a, b := rig.NewPipe(t)
		connected := rig.DialInBackground(t, func() error { return new(iwarp.Dialer).InitiateQP(ctx, qp, a, nil) })
		req, err := new(iwarp.ListenConfig).Respond(ctx, b, nil)
		rig.Must(t, err)
		res, err := req.Accept(ctx, iwarp.AcceptConfig{QP: iwarp.QPConfig{Receives: iwarp.Receives{Count: 1}}})
		rig.Must(t, err)
		rig.Must(t, <-connected)
		for i := range n {
			m, err := res.Receive(ctx)
			rig.Must(t, err)
			if m.Bytes()[0] != byte(i) {
				t.Errorf("message %d is that of call %d", i, m.Bytes()[0])
			}
			m.Done()
		}
		rig.CloseBoth(t, qp, res)
	})
}

// Several goroutines wait for one request, before it completes and after. One that gives up leaves it to the others.
func TestPendingShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
		p, err := qp.Submit(t.Context(), &iwarp.SendWR{ID: 7})
		rig.Must(t, err)
		got := make(chan iwarp.WC)
		for range 3 {
			go func() {
				wc, err := p.Wait(t.Context())
				if failed := (*iwarp.WCError)(nil); !errors.As(err, &failed) {
					t.Errorf("a request that was flushed: %v", err)
				}
				got <- wc
			}()
		}
		if _, err := p.Wait(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gives up: %v", err)
		}
		synctest.Wait()
		rig.Should(t, qp.Close())
		for range 3 {
			if wc := <-got; wc.ID != 7 || wc.Status != iwarp.StatusFlushed {
				t.Errorf("the completion is %+v", wc)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if wc, err := p.Wait(gone); wc.ID != 7 || err == nil {
			t.Errorf("afterwards: %+v, %v", wc, err)
		}
	})
}

// A Submit that waits for room ends with its context, and then nothing was posted; or with the QP.
func TestSubmitGivesUp(t *testing.T) {
	t.Parallel()
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	qp, err := pd.CreateQP(iwarp.QPConfig{SendDepth: 1})
	rig.Must(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := qp.Submit(over, &iwarp.SendWR{ID: 9}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	p, err := qp.Submit(t.Context(), &iwarp.SendWR{ID: 1}) // for which there is room
	rig.Must(t, err)
	if _, err := qp.Submit(soon(t), &iwarp.SendWR{ID: 2}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a full queue: %v", err)
	}
	if _, err := p.Wait(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a connection: %v", err)
	}
	waits := rig.DialInBackground(t, func() error {
		_, err := qp.Submit(rig.Within(t), &iwarp.SendWR{ID: 3})
		return err
	})
	rig.Should(t, qp.Close())
	if err := <-waits; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the QP was closed: %v", err)
	}
	if wc, err := p.Wait(rig.Within(t)); wc.ID != 1 || wc.Status != iwarp.StatusFlushed || err == nil {
		t.Errorf("%+v, %v", wc, err)
	}
}

// Room that requests without a completion have left is room.
func TestSubmitBehindUnsignaled(t *testing.T) {
	t.Parallel()
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{SendDepth: 2})
	const size = 32 << 20 // more than TCP takes while the peer does not read
	src := res.MR(size, 0)
	write := iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, size)}, Unsignaled: true}
	res.MustPost(&write)
	res.MustPost(&write)
	submitted := rig.DialInBackground(t, func() error {
		_, err := res.Submit(rig.Within(t), &iwarp.SendWR{Unsignaled: true})
		return err
	})
	read := rig.DialInBackground(t, func() error { _, err := io.Copy(io.Discard, p.Conn); return err })
	rig.Should(t, <-submitted)
	_ = res.Abort()
	<-read
}

// All returns each completion with the error of its request, and then why no more come.
func TestAllCompletions(t *testing.T) {
	t.Parallel()
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	qp, err := pd.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	for id := range uint64(3) {
		rig.Must(t, qp.PostRecv(&iwarp.RecvWR{ID: id}))
	}
	rig.Must(t, qp.Close())
	next := uint64(0)
	for wc, err := range qp.RecvCQ().All(rig.Within(t)) {
		var failed *iwarp.WCError
		if next < 3 && (!errors.As(err, &failed) || wc.ID != next || wc.QP != qp) {
			t.Errorf("completion %d: %+v, %v", next, wc, err)
		}
		if next == 3 && (!errors.Is(err, iwarp.ErrNoQP) || wc != (iwarp.WC{})) {
			t.Errorf("at the end: %+v, %v", wc, err)
		}
		next++
	}
	if next != 4 {
		t.Errorf("the loop has run %d times", next)
	}
}

// What was submitted completes for Wait, also if it was asked for no completion.
func TestSubmitUnsignaled(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	p, err := ini.Submit(rig.Within(t), &iwarp.SendWR{ID: 4, Op: iwarp.OpWrite, Unsignaled: true})
	rig.Must(t, err)
	if wc, err := p.Wait(rig.Within(t)); err != nil || wc.ID != 4 {
		t.Errorf("%+v, %v", wc, err)
	}
	rig.Finish(t, ini, res)
}

// With a context that is over, Wait returns what is there.
func TestWaitOver(t *testing.T) {
	qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
	gone := rig.Canceled(t)
	for range 20 { // the context and the completion are both there: either may be seen first
		p, err := qp.Submit(t.Context(), &iwarp.SendWR{ID: 7})
		rig.Must(t, err)
		if wc, err := p.Wait(gone); !errors.Is(err, context.Canceled) || wc != (iwarp.WC{}) {
			t.Errorf("before the completion: %+v, %v", wc, err)
		}
		defer func() {
			if wc, err := p.Wait(gone); wc.ID != 7 || wc.Status != iwarp.StatusFlushed || errors.Is(err, context.Canceled) {
				t.Errorf("after it: %+v, %v", wc, err)
			}
		}()
	}
	rig.Must(t, qp.Close())
}

// A call that waits for longer than Receives.Timeout, and not because of unread messages, waits on.
func TestNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qp := initiateOverPipe(t, new(iwarp.Dialer),
			iwarp.QPConfig{SendDepth: 1, Receives: iwarp.Receives{Count: 1, Timeout: time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		read := func() error { _, err := qp.Read(ctx, iwarp.SGE{}, iwarp.Remote{STag: 5}); return err }
		for range 2 { // the second waits for room
			defer func(read <-chan error) {
				if err := <-read; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, iwarp.ErrHeldBack) {
					t.Error(err)
				}
			}(rig.DialInBackground(t, read))
		}
	})
}
