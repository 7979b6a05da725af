package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

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

// A Submit that waits for room ends with its context, and then nothing was posted; or with the QP.
func TestSubmitGivesUp(t *testing.T) {
	t.Parallel()
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	qp, err := pd.CreateQP(iwarp.QPConfig{SendDepth: 1})
	rig.Must(t, err)
	p, err := qp.Submit(t.Context(), &iwarp.SendWR{ID: 1})
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
