package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/rdmap"
)

// A part sends a segment of a Send.
type part func(msn, mo uint32, last bool, text string)

// beginRecv calls Recv, which is then the given number of receives. What it returns gives that up when half of
// a message is there, and has the rest come.
func beginRecv(e *rig.End, s iwarp.SGE, posted int) func(msn uint32, text string, put part) {
	e.T.Helper()
	ctx, cancel := context.WithCancel(e.T.Context())
	call := rig.DialInBackground(e.T, func() error { _, err := e.Recv(ctx, s); return err })
	rig.Until(e.T, func() bool { return e.Query().Receives == posted }, "the receive")
	return func(msn uint32, text string, put part) {
		e.T.Helper()
		before, half := e.Stats().Received[rdmap.OpSend].Bytes, len(text)/2
		put(msn, 0, false, text[:half])
		rig.Until(e.T, func() bool { return e.Stats().Received[rdmap.OpSend].Bytes > before }, "the first segment")
		cancel()
		var pending *iwarp.PendingError
		if err := <-call; !errors.As(err, &pending) {
			e.T.Fatalf("given up: %v", err)
		}
		put(msn, uint32(half), true, text[half:])
		rig.Wait(e.T, pending.Free, "the memory")
	}
}

// receives has Recv return a message.
func wantText(e *rig.End, s iwarp.SGE, want string) {
	e.T.Helper()
	wc, err := e.Recv(rig.Within(e.T), s)
	if got := s.MR.Bytes()[s.Offset:][:wc.Length]; err != nil || string(got) != want {
		e.T.Errorf("received %q (%v), want %q", got, err, want)
	}
}

// TestRecvKeptInOrder keeps messages that came to memory in the middle of a region, for Recvs of which the first has
// not enough memory: none is passed over for it.
func TestRecvKeptInOrder(t *testing.T) {
	res, p := rig.RespondToPeer(t, patient())
	dst := res.Filled(64, 'z', iwarp.LocalWrite)
	texts := []string{"the first", "the second"}
	var given [2]func(msn uint32, text string, put part)
	for i := range given {
		given[i] = beginRecv(res, dst.Slice(16*(i+1), 16), i+1)
	}
	for i, text := range texts {
		given[i](uint32(i+1), text, p.SendPart)
	}
	if _, err := res.Recv(rig.Within(t), dst.Slice(48, 4)); !errors.Is(err, iwarp.ErrInvalid) ||
		!rig.Contains(err, "9 bytes") {
		t.Errorf("too small for the message: %v", err)
	}
	for _, text := range texts {
		wantText(res, dst.Slice(48, 16), text)
	}
	_ = res.Abort()
}

// TestRecvKeptOfAnother keeps a message to the end of its connection, and connects the QP to another peer, with and
// without Modify to Idle before: Recv does not return it for one of the new peer's.
func TestRecvKeptOfAnother(t *testing.T) {
	for _, modify := range []bool{true, false} {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD})
		res.QP = rig.NewQP(t, res.PD, patient())
		dst := res.MR(64, iwarp.LocalWrite)
		p := takesPeer(res, ln)
		beginRecv(res, dst.Slice(0, 16), 1)(1, "a secret", p.SendPart)
		rig.Must(t, p.Conn.Close())
		rig.Wait(t, res.Done(), "the end")
		if modify {
			rig.Must(t, res.Modify(iwarp.StateIdle))
			if wc, err := res.Recv(deadline(t, time.Millisecond), dst.Slice(32, 16)); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("without a connection: %+v, %v", wc, err)
			}
		}
		p = takesPeer(res, ln)
		got := rig.DialInBackground(t, func() error { wantText(res, dst.Slice(32, 16), "public"); return nil })
		rig.Until(t, func() bool { return res.Query().Receives == 1 || len(got) > 0 }, "the receive")
		p.SendPart(1, 0, true, "public")
		rig.Must(t, <-got)
		_ = res.Abort()
	}
}

// takesPeer connects the end's QP to a peer of revision 2 that the test plays.
func takesPeer(e *rig.End, ln *iwarp.Listener) *rig.Peer {
	e.T.Helper()
	p := rig.DialPeer(e.T, ln.Addr())
	accepted := takesAgain(e, ln)
	p.Start(2)
	rig.Must(e.T, <-accepted)
	return p
}

// takesAgain accepts a connection for the end's QP while the test goes on.
func takesAgain(e *rig.End, ln *iwarp.Listener) <-chan error {
	return rig.DialInBackground(e.T, func() error {
		req, err := ln.Accept(rig.Within(e.T))
		if err == nil {
			err = req.AcceptQP(rig.Within(e.T), e.QP, iwarp.AcceptConfig{})
		}
		return err
	})
}

// TestRecvKeptOfAnotherSession is the same over SCTP.
func TestRecvKeptOfAnotherSession(t *testing.T) {
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	res.QP = rig.NewQP(t, res.PD, patient())
	dst := res.MR(64, iwarp.LocalWrite)
	takesPeer := func() (*rig.SCTPPeer, part) {
		accepted, p, ssn := takesAgain(res, ln), rig.NewSCTPPeer(t, ln), 0
		p.Says(17, "\x00\x00\x00\x01")
		p.Hears()
		rig.Must(t, <-accepted)
		return p, func(msn, mo uint32, last bool, text string) {
			ssn++
			h := rdmap.OpSend.Header(1)
			h.Last, h.MSN, h.MO = last, msn, mo
			p.Says(16, fmt.Sprintf("\x00%c%s%s", ssn, h.Append(nil), text))
		}
	}
	p, put := takesPeer()
	beginRecv(res, dst.Slice(0, 16), 1)(1, "a secret", put)
	p.Abort("")
	rig.Wait(t, res.Done(), "the end")
	rig.Must(t, res.Modify(iwarp.StateIdle))
	_, put = takesPeer()
	got := rig.DialInBackground(t, func() error { wantText(res, dst.Slice(32, 16), "public"); return nil })
	rig.Until(t, func() bool { return res.Query().Receives == 1 || len(got) > 0 }, "the receive")
	put(1, 0, true, "public")
	rig.Must(t, <-got)
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
		p, req := rig.RespondOverPipe(t.Context(), t, iwarp.ListenConfig{}, func(p *rig.Peer) { p.Start(2) })
		qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{QP: patient()})
		rig.Must(t, err)
		synctest.Wait() // for the RTR indication, which the peer sends by itself
		mr, err := qp.PD().Register(make([]byte, 16), iwarp.LocalWrite)
		rig.Must(t, err)
		for i := range 30 {
			comes := func() { p.SendPart(uint32(i+1), 0, true, "hello"); synctest.Wait() }
			ctx := &lastMoment{t.Context(), comes, make(chan struct{})}
			if wc, err := qp.Recv(ctx, mr.Slice(0, 16)); err != nil || wc.Length != 5 {
				t.Fatalf("message %d: %+v, %v", i, wc, err)
			}
		}
		_ = qp.Abort()
	})
}

// Who takes strict turns by Send and Recv has RNR at both ends: a question or an answer may be there before the Recv
// that is for it.
func TestTurns(t *testing.T) {
	s := rig.Setup{}
	s.Dialer.QP.RNR.Messages, s.Accept.QP.RNR.Messages = 1, 1
	ini, res := s.Connect(t)
	question, answer := ini.MR(1, iwarp.LocalWrite), res.MR(1, iwarp.LocalWrite)
	answered := make(chan error, 1)
	go func() {
		for range 50 {
			_, err := res.Recv(rig.Within(t), answer.Slice(0, 1))
			if err == nil {
				err = res.Send(rig.Within(t), answer.Slice(0, 1))
			}
			if err != nil {
				answered <- err
				return
			}
		}
		answered <- nil
	}()
	for i := range 50 {
		question.Bytes()[0] = byte(i)
		rig.Must(t, ini.Send(rig.Within(t), question.Slice(0, 1)))
		wc, err := ini.Recv(rig.Within(t), question.Slice(0, 1))
		rig.Must(t, err)
		if wc.Length != 1 || question.Bytes()[0] != byte(i) {
			t.Fatalf("turn %d: %d bytes, %d", i, wc.Length, question.Bytes()[0])
		}
	}
	rig.Must(t, <-answered)
}
