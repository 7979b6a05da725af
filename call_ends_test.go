package iwarp_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestSendGivenUpIdle gives up a Send on a QP that has no connection as yet: that is what the
// error says.
func TestSendGivenUpIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
		qp := create(t, pd, iwarp.QPConfig{})
		mr, err := pd.Register(make([]byte, 8), 0)
		must(t, err)
		var pending *iwarp.PendingError
		if err := qp.Send(deadline(t, time.Second), mr.Slice(0, 8)); !errors.As(err, &pending) || !contains(err, "waits for a connection") {
			t.Fatal(err)
		}
		_ = qp.Close()
		<-pending.Free
	})
}

// TestRecvKeptAtTheEnd gives up two receives with messages in them, of which one is never whole: the
// other message is kept beyond the end of the connection.
func TestRecvKeptAtTheEnd(t *testing.T) {
	t.Parallel()
	res, p := respondToPeer(t, iwarp.QPConfig{})
	dst := res.mr(64, iwarp.LocalWrite)
	var calls [2]<-chan error
	var cancels [2]context.CancelFunc
	for i := range calls {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(t.Context())
		calls[i] = dialInBackground(t, func() error { _, err := res.Recv(ctx, dst.Slice(16*i, 16)); return err })
		until(t, func() bool { return res.Query().Receives == i+1 }, "the receive")
	}
	part := func(msn, mo uint32, last bool, text string, octets uint64) {
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN, h.MO = last, msn, mo
		p.send(p.fpdu(h, []byte(text)))
		until(t, func() bool { return res.Stats().Received[rdmap.OpSend].Octets == octets }, "the segment")
	}
	givesUp := func(i int) *iwarp.PendingError {
		cancels[i]()
		var pending *iwarp.PendingError
		if err := <-calls[i]; !errors.As(err, &pending) {
			t.Fatal(err)
		}
		return pending
	}
	part(1, 0, false, "he", 2)
	first := givesUp(0)
	part(1, 2, true, "llo", 5)
	wait(t, first.Free, "the memory of the first")
	part(2, 0, false, "never", 10)
	second := givesUp(1)
	_ = res.Abort()
	wait(t, second.Free, "the memory of the second")
	if wc, err := res.Recv(within(t), dst.Slice(32, 16)); err != nil || wc.Length != 5 || string(dst.Bytes()[32:37]) != "hello" {
		t.Errorf("%+v, %v: %q", wc, err, dst.Bytes()[32:48])
	}
	if wc, err := res.Recv(within(t), dst.Slice(32, 16)); !errors.Is(err, iwarp.ErrClosed) || wc != (iwarp.WC{}) {
		t.Errorf("after the last message: %+v, %v", wc, err)
	}
}

// TestRecvKeptEmpty keeps a message of no octets for a Recv that has no memory either.
func TestRecvKeptEmpty(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	call := dialInBackground(t, func() error { _, err := res.Recv(ctx, iwarp.SGE{}); return err })
	until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	before := res.Stats().ReceivedFPDUs
	h := rdmap.OpSend.Header(1)
	h.MSN = 1
	p.send(p.fpdu(h, nil))
	until(t, func() bool { return res.Stats().ReceivedFPDUs > before }, "the first segment")
	cancel()
	var pending *iwarp.PendingError
	if err := <-call; !errors.As(err, &pending) {
		t.Fatal(err)
	}
	h.Last = true
	p.send(p.fpdu(h, nil))
	wait(t, pending.Free, "the end of the message")
	if wc, err := res.Recv(within(t), iwarp.SGE{}); err != nil || wc.Length != 0 {
		t.Errorf("%+v, %v", wc, err)
	}
	_ = res.Abort()
}

// TestLeadWritesMuch has a caller receive for itself while another goroutine sends what it has
// posted: it returns when that is done, although the peer says nothing.
func TestLeadWritesMuch(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	dst := res.mr(8, iwarp.LocalWrite)
	msn := uint32(1)
	feed := func() error {
		p.send(p.message(rdmap.OpSend, msn, []byte("hello")))
		msn++
		return nil
	}
	waiting := led(t, feed, func() error {
		_, err := res.Recv(within(t), dst.Slice(0, 8))
		return err
	}, func(err error) { must(t, err) })
	must(t, feed())
	must(t, over(t, waiting))
	p.meanwhile(func() { _, _ = io.Copy(io.Discard, p.conn) })
	const n = 16 << 20 // more than the socket takes at once
	much := res.mr(n, 0)
	must(t, over(t, dialInBackground(t, func() error {
		_, err := res.Write(within(t), much.Slice(0, n), iwarp.Remote{STag: 5})
		return err
	})))
	_ = res.Abort()
}
