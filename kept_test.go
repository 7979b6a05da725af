package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// A part sends a segment of a Send.
type part func(msn, mo uint32, last bool, text string)

// beginRecv calls Recv, which is then the given number of receives. What it returns gives that up when half of
// a message is there, and has the rest come.
func (e *end) beginRecv(s iwarp.SGE, posted int) func(msn uint32, text string, put part) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	call := dialInBackground(e.t, func() error { _, err := e.Recv(ctx, s); return err })
	until(e.t, func() bool { return e.Query().Receives == posted }, "the receive")
	return func(msn uint32, text string, put part) {
		e.t.Helper()
		before, half := e.Stats().Received[rdmap.OpSend].Octets, len(text)/2
		put(msn, 0, false, text[:half])
		until(e.t, func() bool { return e.Stats().Received[rdmap.OpSend].Octets > before }, "the first segment")
		cancel()
		var pending *iwarp.PendingError
		if err := <-call; !errors.As(err, &pending) {
			e.t.Fatalf("given up: %v", err)
		}
		put(msn, uint32(half), true, text[half:])
		wait(e.t, pending.Free, "the memory")
	}
}

// part sends a segment of a Send.
func (p *peer) part(msn, mo uint32, last bool, text string) {
	h := rdmap.OpSend.Header(1)
	h.Last, h.MSN, h.MO = last, msn, mo
	p.send(p.fpdu(h, []byte(text)))
}

// receives has Recv return a message.
func (e *end) receives(s iwarp.SGE, want string) {
	e.t.Helper()
	wc, err := e.Recv(within(e.t), s)
	if got := s.MR.Bytes()[s.Offset:][:wc.Length]; err != nil || string(got) != want {
		e.t.Errorf("received %q (%v), want %q", got, err, want)
	}
}

// TestRecvKeptInOrder keeps messages that came to memory in the middle of a region, for Recvs of which the first has not
// enough memory: none is passed over for it.
func TestRecvKeptInOrder(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	dst := res.filled(64, 'z', iwarp.LocalWrite)
	texts := []string{"the first", "the second"}
	var given [2]func(msn uint32, text string, put part)
	for i := range given {
		given[i] = res.beginRecv(dst.Slice(16*(i+1), 16), i+1)
	}
	for i, text := range texts {
		given[i](uint32(i+1), text, p.part)
	}
	if _, err := res.Recv(within(t), dst.Slice(48, 4)); !errors.Is(err, iwarp.ErrInvalid) || !contains(err, "9 octets") {
		t.Errorf("too small for the message: %v", err)
	}
	for _, text := range texts {
		res.receives(dst.Slice(48, 16), text)
	}
	_ = res.Abort()
}

// TestRecvKeptOfAnother keeps a message to the end of its connection, and connects the QP to another peer, with and without
// Modify to Idle before: Recv does not return it for one of the new peer's.
func TestRecvKeptOfAnother(t *testing.T) {
	for _, modify := range []bool{true, false} {
		res := newEnd(t, iwarp.RNICConfig{})
		ln := listen(t, iwarp.ListenConfig{PD: res.pd})
		res.QP = create(t, res.pd, iwarp.QPConfig{})
		dst := res.mr(64, iwarp.LocalWrite)
		p := res.takesPeer(ln)
		res.beginRecv(dst.Slice(0, 16), 1)(1, "a secret", p.part)
		must(t, p.conn.Close())
		wait(t, res.Done(), "the end")
		if modify {
			must(t, res.Modify(iwarp.StateIdle))
			if wc, err := res.Recv(deadline(t, time.Millisecond), dst.Slice(32, 16)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without a connection: %+v, %v", wc, err)
			}
		}
		p = res.takesPeer(ln)
		got := dialInBackground(t, func() error { res.receives(dst.Slice(32, 16), "public"); return nil })
		until(t, func() bool { return res.Query().Receives == 1 || len(got) > 0 }, "the receive")
		p.part(1, 0, true, "public")
		must(t, <-got)
		_ = res.Abort()
	}
}

// takesPeer connects the end's QP to a peer of revision 2 that the test plays.
func (e *end) takesPeer(ln *iwarp.Listener) *peer {
	e.t.Helper()
	p := dialPeer(e.t, ln.Addr())
	accepted := e.takesAgain(ln)
	p.start(2)
	must(e.t, <-accepted)
	return p
}

// takesAgain accepts a connection for the end's QP while the test goes on.
func (e *end) takesAgain(ln *iwarp.Listener) <-chan error {
	return dialInBackground(e.t, func() error {
		req, err := ln.Accept(within(e.t))
		if err == nil {
			err = req.AcceptQP(within(e.t), e.QP, iwarp.AcceptConfig{})
		}
		return err
	})
}

// TestRecvKeptOfAnotherSession is the same over SCTP.
func TestRecvKeptOfAnotherSession(t *testing.T) {
	res := newEnd(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: -1})
	must(t, err)
	defer ln.Close()
	res.QP = create(t, res.pd, iwarp.QPConfig{})
	dst := res.mr(64, iwarp.LocalWrite)
	takesPeer := func() (*sctpPeer, part) {
		accepted, p, ssn := res.takesAgain(ln), newSCTPPeer(t, ln), 0
		p.says(17, "\x00\x00\x00\x01")
		p.hears()
		must(t, <-accepted)
		return p, func(msn, mo uint32, last bool, text string) {
			ssn++
			h := rdmap.OpSend.Header(1)
			h.Last, h.MSN, h.MO = last, msn, mo
			p.says(16, fmt.Sprintf("\x00%c%s%s", ssn, h.Append(nil), text))
		}
	}
	p, put := takesPeer()
	res.beginRecv(dst.Slice(0, 16), 1)(1, "a secret", put)
	p.Abort("")
	wait(t, res.Done(), "the end")
	must(t, res.Modify(iwarp.StateIdle))
	_, put = takesPeer()
	got := dialInBackground(t, func() error { res.receives(dst.Slice(32, 16), "public"); return nil })
	until(t, func() bool { return res.Query().Receives == 1 || len(got) > 0 }, "the receive")
	put(1, 0, true, "public")
	must(t, <-got)
	_ = res.Abort()
}

// A lastMoment is a context that ends when someone waits for that, after it has done something.
type lastMoment struct {
	context.Context
	before func()
	over   chan struct{}
}

func (c *lastMoment) Err() error {
	select {
	case <-c.over:
		return context.Canceled
	default:
		return nil
	}
}

func (c *lastMoment) Done() <-chan struct{} {
	if c.Err() == nil {
		c.before()
		close(c.over)
	}
	return c.over
}

// TestRecvAtTheLastMoment has contexts end when the message is just there: Recv returns it, and does not keep it
// for another. Which of the two is seen first is chance, so there are some.
func TestRecvAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, req := respondOverPipe(t.Context(), t, iwarp.ListenConfig{}, func(p *peer) { p.start(2) })
		qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{})
		must(t, err)
		synctest.Wait() // for the RTR indication, which the peer sends by itself
		mr, err := qp.PD().Register(make([]byte, 16), iwarp.LocalWrite)
		must(t, err)
		for i := range 30 {
			comes := func() { p.part(uint32(i+1), 0, true, "hello"); synctest.Wait() }
			ctx := &lastMoment{t.Context(), comes, make(chan struct{})}
			if wc, err := qp.Recv(ctx, mr.Slice(0, 16)); err != nil || wc.Length != 5 {
				t.Fatalf("message %d: %+v, %v", i, wc, err)
			}
		}
		_ = qp.Abort()
	})
}
