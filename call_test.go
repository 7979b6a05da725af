package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/rdmap"
)

// patient configures a QP that Recv may be called on at any time.
func patient() iwarp.QPConfig { return iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 16}} }

func connectPatient(t *testing.T) (ini, res *rig.End) {
	t.Helper()
	return rig.Setup{Dialer: iwarp.Dialer{QP: patient()}, Accept: iwarp.AcceptConfig{QP: patient()}}.Connect(t)
}

// TestCallWithoutTime makes calls whose context is over: they post nothing.
func TestCallWithoutTime(t *testing.T) {
	ini, res := connectPatient(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	mr, away := ini.MR(8, iwarp.LocalWrite), res.MR(8, iwarp.RemoteWrite|iwarp.RemoteRead)
	for name, call := range map[string]func() error{
		"Send":  func() error { return ini.Send(gone, mr.Slice(0, 8)) },
		"Write": func() error { _, err := ini.Write(gone, mr.Slice(0, 8), away.Remote(0)); return err },
		"Read":  func() error { _, err := ini.Read(gone, mr.Slice(0, 8), away.Remote(0)); return err },
		"Recv":  func() error { _, err := ini.Recv(gone, mr.Slice(0, 8)); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) || errors.As(err, new(*iwarp.PendingError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if q := ini.Query(); q.Sends != 0 || q.Receives != 0 {
		t.Errorf("posted: %+v", q)
	}
	rig.Works(t, ini, res)
}

// TestRecvGivenUp gives up receives before a message comes: they are taken back, the one
// in the middle too, and no message is lost in them.
func TestRecvGivenUp(t *testing.T) {
	ini, res := rig.Connect(t)
	dst := res.MR(64, iwarp.LocalWrite)
	received := func(id uint64, off int) {
		res.MustPostRecv(id, dst.Slice(off, 1))
	}
	received(1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	call := rig.DialInBackground(t, func() error { _, err := res.Recv(ctx, dst.Slice(60, 4)); return err })
	rig.Until(t, func() bool { return res.Query().Receives == 2 }, "the receive")
	received(2, 1)
	received(3, 2)
	cancel()
	if err := <-call; !errors.Is(err, context.Canceled) || errors.As(err, new(*iwarp.PendingError)) {
		t.Fatal(err)
	}
	if n := res.Query().Receives; n != 3 {
		t.Fatalf("%d receives are left", n)
	}
	src := ini.Filled(8, 'a', 0)
	for i := range 3 {
		rig.Must(t, ini.Send(rig.Within(t), src.Slice(i, 1)))
	}
	for id := range uint64(3) {
		res.WantReceived(id+1, iwarp.StatusSuccess)
	}
	if !bytes.Equal(dst.Bytes()[:3], src.Bytes()[:3]) || !bytes.Equal(dst.Bytes()[60:], make([]byte, 4)) {
		t.Errorf("received % x", dst.Bytes())
	}
	rig.Works(t, ini, res)
}

// TestRecvKept gives up a receive that a message has begun to fill: the message is kept
// for the next Recv, which gets it before a later one, and the memory says when it is
// free.
func TestRecvKept(t *testing.T) {
	res, p := rig.RespondToPeer(t, patient())
	dst := res.MR(64, iwarp.LocalWrite)
	ctx, cancel := context.WithCancel(t.Context())
	call := rig.DialInBackground(t, func() error { _, err := res.Recv(ctx, dst.Slice(0, 16)); return err })
	rig.Until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	part := func(mo uint32, last bool, text string) {
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN, h.MO = last, 1, mo
		p.Send(p.FPDU(h, []byte(text)))
	}
	part(0, false, "be")
	rig.Until(t, func() bool { return res.Stats().Received[rdmap.OpSend].Bytes == 2 }, "the first segment")
	cancel()
	var pending *iwarp.PendingError
	if err := <-call; !errors.Is(err, context.Canceled) || !errors.As(err, &pending) || pending.Op != iwarp.OpRecv ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	select {
	case <-pending.Free:
		t.Fatal("free, and the message is not complete")
	default:
	}
	if _, err := res.Recv(deadline(t, time.Millisecond), dst.Slice(32, 16)); !errors.Is(err, os.ErrDeadlineExceeded) &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the message is not complete: %v", err)
	}
	part(2, true, "gun")
	rig.Wait(t, pending.Free, "the memory")
	dst.Bytes()[0] = 'x' // ours again
	if _, err := res.Recv(rig.Within(t), dst.Slice(32, 4)); !errors.Is(err, iwarp.ErrInvalid) ||
		!rig.Contains(err, "5 bytes") {
		t.Errorf("too small for the message: %v", err)
	}
	wc, err := res.Recv(rig.Within(t), dst.Slice(32, 5)) // just as long
	if err != nil || wc.Length != 5 || string(dst.Bytes()[32:37]) != "begun" {
		t.Errorf("%+v, %v: %q", wc, err, dst.Bytes()[32:48])
	}
	res.MustPostRecv(7, dst.Slice(0, 16))
	p.Send(p.Message(rdmap.OpSend, 2, []byte("next")))
	res.WantReceived(7, iwarp.StatusSuccess)
}

func deadline(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// untilPosted does so when another request has been posted, and the context's error is that of a deadline.
func untilPosted(t *testing.T, e *rig.End) context.Context {
	before := e.Query().Sends
	return overdue{rig.EndsOnce(t, func() bool { return e.Query().Sends != before })}
}

// An overdue context ends as one does whose deadline has passed.
type overdue struct{ context.Context }

func (o overdue) Err() error {
	if o.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestSendGivenUp gives up Sends, Writes and Reads that are under way: the error says
// when their memory is free.
func TestSendGivenUp(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	mr := ini.MR(8, iwarp.LocalWrite)
	_, err := ini.Read(untilPosted(t, ini), mr.Slice(0, 8), iwarp.Remote{STag: 5})
	var read, send *iwarp.PendingError
	if !errors.As(err, &read) || !errors.Is(err, context.DeadlineExceeded) || !read.Timeout() ||
		!errors.Is(err, os.ErrDeadlineExceeded) || read.Op != iwarp.OpRead {
		t.Fatal(err)
	}
	ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Fence: true, Unsignaled: true}) // holds up what follows
	err = ini.Send(untilPosted(t, ini), mr.Slice(0, 8))
	if !errors.As(err, &send) || send.Op != iwarp.OpSend {
		t.Fatal(err)
	}
	for _, pending := range []*iwarp.PendingError{read, send} {
		if rig.Contains(pending, "waits for a connection") {
			t.Error(pending)
		}
		select {
		case <-pending.Free:
			t.Errorf("%v: free, and not complete", pending.Op)
		default:
		}
	}
	s := p.Want(rdmap.OpReadRequest)
	r, _ := rdmap.ParseReadRequest(s.Payload)
	h := rdmap.OpReadResponse.Header(1)
	h.Last, h.STag, h.TO = true, r.SinkSTag, r.SinkTO
	p.Send(p.FPDU(h, make([]byte, 8)))
	rig.Wait(t, read.Free, "the Read's memory")
	rig.Wait(t, send.Free, "the Send's memory")
}

// TestSendGivenUpIdle gives up a Send on a QP that has no connection as yet: that is what the
// error says.
func TestSendGivenUpIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
		qp := rig.NewQP(t, pd, iwarp.QPConfig{})
		mr, err := pd.Register(make([]byte, 8), 0)
		rig.Must(t, err)
		var pending *iwarp.PendingError
		if err := qp.Send(deadline(t, time.Second), mr.Slice(0, 8)); !errors.As(err, &pending) ||
			!rig.Contains(err, "waits for a connection") {
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
	res, p := rig.RespondToPeer(t, patient())
	dst := res.MR(64, iwarp.LocalWrite)
	var calls [2]<-chan error
	var cancels [2]context.CancelFunc
	for i := range calls {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(t.Context())
		calls[i] = rig.DialInBackground(t, func() error { _, err := res.Recv(ctx, dst.Slice(16*i, 16)); return err })
		rig.Until(t, func() bool { return res.Query().Receives == i+1 }, "the receive")
	}
	part := func(msn, mo uint32, last bool, text string, n uint64) {
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN, h.MO = last, msn, mo
		p.Send(p.FPDU(h, []byte(text)))
		rig.Until(t, func() bool { return res.Stats().Received[rdmap.OpSend].Bytes == n }, "the segment")
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
	rig.Wait(t, first.Free, "the memory of the first")
	part(2, 0, false, "never", 10)
	second := givesUp(1)
	_ = res.Abort()
	rig.Wait(t, second.Free, "the memory of the second")
	if wc, err := res.Recv(rig.Within(t), dst.Slice(32, 16)); err != nil || wc.Length != 5 ||
		string(dst.Bytes()[32:37]) != "hello" {
		t.Errorf("%+v, %v: %q", wc, err, dst.Bytes()[32:48])
	}
	if wc, err := res.Recv(rig.Within(t), dst.Slice(32, 16)); !errors.Is(err, iwarp.ErrClosed) || wc != (iwarp.WC{}) {
		t.Errorf("after the last message: %+v, %v", wc, err)
	}
}

// TestRecvKeptEmpty keeps a message of no bytes but a prefix for a Recv that has no memory either.
func TestRecvKeptEmpty(t *testing.T) {
	res, p := rig.RespondToPeerAs(t, iwarp.AcceptConfig{QP: patient(), Prepare: func(
		qp *iwarp.QP) error {
		return emulation.SetPrefix(qp, true)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	call := rig.DialInBackground(t, func() error { _, err := res.Recv(ctx, iwarp.SGE{}); return err })
	rig.Until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	before := res.Stats().ReceivedFPDUs
	h := rdmap.OpSend.Header(1)
	h.MSN = 1
	p.Send(p.FPDU(h, make([]byte, 4)))
	rig.Until(t, func() bool { return res.Stats().ReceivedFPDUs > before }, "the first segment")
	cancel()
	var pending *iwarp.PendingError
	if err := <-call; !errors.As(err, &pending) {
		t.Fatal(err)
	}
	h.Last, h.MO = true, 4
	p.Send(p.FPDU(h, make([]byte, 4)))
	rig.Wait(t, pending.Free, "the end of the message")
	if wc, err := res.Recv(rig.Within(t), iwarp.SGE{}); err != nil || wc.Length != 0 {
		t.Errorf("%+v, %v", wc, err)
	}
	_ = res.Abort()
}

// TestLeadWritesMuch has a caller receive for itself while another goroutine sends what it has
// posted: it returns when that is done, although the peer says nothing.
func TestLeadWritesMuch(t *testing.T) {
	res, p := rig.RespondToPeer(t, patient())
	dst := res.MR(8, iwarp.LocalWrite)
	msn := uint32(1)
	feed := func() error {
		p.Send(p.Message(rdmap.OpSend, msn, []byte("hello")))
		msn++
		return nil
	}
	waiting := led(t, feed, func() error {
		_, err := res.Recv(rig.Within(t), dst.Slice(0, 8))
		return err
	}, func(err error) { rig.Must(t, err) })
	rig.Must(t, feed())
	rig.Must(t, rig.Outcome(t, waiting))
	p.Meanwhile(func() { _, _ = io.Copy(io.Discard, p.Conn) })
	const n = 16 << 20 // more than the socket takes at once
	much := res.MR(n, 0)
	rig.Must(t, rig.Outcome(t, rig.DialInBackground(t, func() error {
		_, err := res.Write(rig.Within(t), much.Slice(0, n), iwarp.Remote{STag: 5})
		return err
	})))
	_ = res.Abort()
}
