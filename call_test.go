package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestCallWithoutTime makes calls whose context is over: they post nothing.
func TestCallWithoutTime(t *testing.T) {
	ini, res := connect(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	mr, away := ini.mr(8, iwarp.LocalWrite), res.mr(8, iwarp.RemoteWrite|iwarp.RemoteRead)
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
	works(t, ini, res)
}

// TestRecvGivenUp gives up receives before a message comes: they are taken back, the one
// in the middle too, and no message is lost in them.
func TestRecvGivenUp(t *testing.T) {
	ini, res := connect(t)
	dst := res.mr(64, iwarp.LocalWrite)
	received := func(id uint64, off int) {
		res.postRecv(id, dst.Slice(off, 1))
	}
	received(1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	call := dialInBackground(t, func() error { _, err := res.Recv(ctx, dst.Slice(60, 4)); return err })
	until(t, func() bool { return res.Query().Receives == 2 }, "the receive")
	received(2, 1)
	received(3, 2)
	cancel()
	if err := <-call; !errors.Is(err, context.Canceled) || errors.As(err, new(*iwarp.PendingError)) {
		t.Fatal(err)
	}
	if n := res.Query().Receives; n != 3 {
		t.Fatalf("%d receives are left", n)
	}
	src := ini.filled(8, 'a', 0)
	for i := range 3 {
		must(t, ini.Send(within(t), src.Slice(i, 1)))
	}
	for id := range uint64(3) {
		res.wantReceived(id+1, iwarp.StatusSuccess)
	}
	if !bytes.Equal(dst.Bytes()[:3], src.Bytes()[:3]) || !bytes.Equal(dst.Bytes()[60:], make([]byte, 4)) {
		t.Errorf("received % x", dst.Bytes())
	}
	works(t, ini, res)
}

// TestRecvKept gives up a receive that a message has begun to fill: the message is kept
// for the next Recv, which gets it before a later one, and the memory says when it is
// free.
func TestRecvKept(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	dst := res.mr(64, iwarp.LocalWrite)
	ctx, cancel := context.WithCancel(t.Context())
	call := dialInBackground(t, func() error { _, err := res.Recv(ctx, dst.Slice(0, 16)); return err })
	until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	part := func(mo uint32, last bool, text string) {
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN, h.MO = last, 1, mo
		p.send(p.fpdu(h, []byte(text)))
	}
	part(0, false, "be")
	until(t, func() bool { return res.Stats().Received[rdmap.OpSend].Octets == 2 }, "the first segment")
	cancel()
	var pending *iwarp.PendingError
	if err := <-call; !errors.Is(err, context.Canceled) || !errors.As(err, &pending) || pending.Op != iwarp.OpRecv {
		t.Fatal(err)
	}
	select {
	case <-pending.Free:
		t.Fatal("free, and the message is not complete")
	default:
	}
	if _, err := res.Recv(deadline(t, time.Millisecond), dst.Slice(32, 16)); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the message is not complete: %v", err)
	}
	part(2, true, "gun")
	wait(t, pending.Free, "the memory")
	dst.Bytes()[0] = 'x' // ours again
	if _, err := res.Recv(within(t), dst.Slice(32, 4)); !errors.Is(err, iwarp.ErrInvalid) || !contains(err, "5 octets") {
		t.Errorf("too small for the message: %v", err)
	}
	wc, err := res.Recv(within(t), dst.Slice(32, 5)) // just as long
	if err != nil || wc.Length != 5 || string(dst.Bytes()[32:37]) != "begun" {
		t.Errorf("%+v, %v: %q", wc, err, dst.Bytes()[32:48])
	}
	res.postRecv(7, dst.Slice(0, 16))
	p.send(p.message(rdmap.OpSend, 2, []byte("next")))
	res.wantReceived(7, iwarp.StatusSuccess)
}

func deadline(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// untilHeld returns a context that ends when another request has been posted that waits for
// the Initiator: a deadline might pass before.
func untilHeld(t *testing.T, res *end) context.Context {
	before := res.Stats().Held
	return endsOnce(t, func() bool { return res.Stats().Held != before })
}

// untilPosted does so when another request has been posted, and the context's error is that of a deadline.
func untilPosted(t *testing.T, e *end) context.Context {
	before := e.Query().Sends
	return overdue{endsOnce(t, func() bool { return e.Query().Sends != before })}
}

func endsOnce(t *testing.T, there func() bool) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for !there() && ctx.Err() == nil {
			time.Sleep(100 * time.Microsecond)
		}
		cancel()
	}()
	return ctx
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
	ini, p := initiateToPeer(t)
	p.want(rdmap.OpWrite) // RTR
	mr := ini.mr(8, iwarp.LocalWrite)
	_, err := ini.Read(untilPosted(t, ini), mr.Slice(0, 8), iwarp.Remote{STag: 5})
	var read, send *iwarp.PendingError
	if !errors.As(err, &read) || !errors.Is(err, context.DeadlineExceeded) || !read.Timeout() || read.Op != iwarp.OpRead {
		t.Fatal(err)
	}
	ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Fence: true, Unsignaled: true}) // holds up what follows
	err = ini.Send(untilPosted(t, ini), mr.Slice(0, 8))
	if !errors.As(err, &send) || send.Op != iwarp.OpSend {
		t.Fatal(err)
	}
	for _, pending := range []*iwarp.PendingError{read, send} {
		if contains(pending, "waits for a connection") {
			t.Error(pending)
		}
		select {
		case <-pending.Free:
			t.Errorf("%v: free, and not complete", pending.Op)
		default:
		}
	}
	s := p.want(rdmap.OpReadRequest)
	r, _ := rdmap.ParseReadRequest(s.Payload)
	h := rdmap.OpReadResponse.Header(1)
	h.Last, h.STag, h.TO = true, r.SinkSTag, r.SinkTO
	p.send(p.fpdu(h, make([]byte, 8)))
	wait(t, read.Free, "the Read's memory")
	wait(t, send.Free, "the Send's memory")
}

// TestAwaitingInitiator has both applications wait for the other to begin: the Responder's
// calls say why nothing comes of them, Close does not wait, and a counter tells.
//
// Proves Q11.
func TestAwaitingInitiator(t *testing.T) {
	t.Parallel()
	patient := iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1}}
	for _, s := range []setup{
		{Dialer: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}, accept: patient},
		{Dialer: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}}, accept: patient},
	} {
		ini, res := s.connect(t)
		mr := res.mr(8, iwarp.LocalWrite)
		for name, call := range map[string]func(context.Context) error{
			"Send":  func(ctx context.Context) error { return res.Send(ctx, mr.Slice(0, 8)) },
			"Write": func(ctx context.Context) error { _, err := res.Write(ctx, mr.Slice(0, 8), iwarp.Remote{}); return err },
			"Read":  func(ctx context.Context) error { _, err := res.Read(ctx, mr.Slice(0, 8), iwarp.Remote{}); return err },
		} {
			err := call(untilHeld(t, res))
			if !errors.Is(err, iwarp.ErrAwaitingInitiator) || !errors.Is(err, context.Canceled) || !contains(err, "the Initiator's first FPDU") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := res.Stats().Held; n != 3 {
			t.Errorf("%d requests were held", n)
		}
		closed := dialInBackground(t, func() error { return ini.wantEnd() })
		if err := over(t, dialInBackground(t, res.Close)); !errors.Is(err, iwarp.ErrAwaitingInitiator) || !contains(err, "requests that were never sent: 3") {
			t.Errorf("Close: %v", err)
		}
		if err := <-closed; err != nil && !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("the Initiator's end: %v", err)
		}
	}
}

// TestAwaitingInitiatorAborted aborts a connection whose Close has given up a Send: Close says so.
//
// Proves Q11.
func TestAwaitingInitiatorAborted(t *testing.T) {
	patient := iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1}}
	stays := iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}, QP: iwarp.QPConfig{HalfClose: true}}
	_, res := setup{Dialer: stays, accept: patient}.connect(t)
	must(t, res.PostSend(&iwarp.SendWR{ID: 1, Op: iwarp.OpSend}))
	closed := dialInBackground(t, res.Close)
	until(t, func() bool { return res.Err() != nil || res.Query().Sends == 0 }, "the Send to be given up")
	_ = res.Abort()
	if err := over(t, closed); !errors.Is(err, iwarp.ErrAwaitingInitiator) {
		t.Errorf("Close: %v", err)
	}
}

// sendsEarly has a Responder send first, against RFC 5044, as siw lets it: by the preset,
// and by the QP's own setting. Without either its Send waits.
func sendsEarly(t *testing.T, siw *iwarp.Preset) {
	without := *siw
	without.SendEarly = 0
	for _, c := range []struct {
		accept iwarp.AcceptConfig
		early  bool
	}{
		{iwarp.AcceptConfig{Preset: siw}, true},
		{iwarp.AcceptConfig{QP: iwarp.QPConfig{SendEarly: time.Millisecond}}, true},
		{iwarp.AcceptConfig{Preset: &without}, false},
	} {
		ini, res := setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}, accept: c.accept}.connect(t)
		ini.postRecv(1, ini.mr(8, iwarp.LocalWrite).Slice(0, 8))
		if !c.early {
			if err := res.Send(untilHeld(t, res), res.mr(8, 0).Slice(0, 8)); !errors.Is(err, iwarp.ErrAwaitingInitiator) {
				t.Error(err)
			}
			continue
		}
		should(t, res.Send(within(t), res.filled(8, 1, 0).Slice(0, 8)))
		ini.wantReceived(1, iwarp.StatusSuccess)
		if n := ini.Stats().Odd.Early; n != 1 {
			t.Errorf("the Initiator has counted %d", n)
		}
	}
}
