package iwarp_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// wantSaid expects an error that has words in it, and wraps another.
func wantSaid(t *testing.T, what string, err, wraps error, words ...string) {
	t.Helper()
	if !errors.Is(err, wraps) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v: says nothing of %q", what, err, w)
		}
	}
}

// TestNegativeLimits has Listen name a limit that is none, and Accept of a NewListener.
func TestNegativeLimits(t *testing.T) {
	for name, cfg := range map[string]iwarp.ListenConfig{
		"MaxHalfOpen is -1":          {MaxHalfOpen: -1},
		"MaxHalfOpenPerSource is -2": {MaxHalfOpenPerSource: -2},
		"MaxPerSource is -3":         {MaxPerSource: -3},
	} {
		_, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", cfg)
		wantSaid(t, "Listen", err, iwarp.ErrInvalid, name)

		on, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ln := iwarp.NewListener(on, cfg)
		_, err = ln.Accept(within(t))
		wantSaid(t, "Accept", err, iwarp.ErrInvalid, name)
		_ = ln.Close()
		if _, err := on.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("what it listened on is open: %v", err)
		}
	}
}

// TestGivenUpSaysWhat ends contexts while something is waited for: the error tells what.
func TestGivenUpSaysWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		gone, cancel := context.WithCancel(t.Context())
		dialed := dialInBackground(t, func() error {
			_, err := (&iwarp.Dialer{}).Initiate(gone, a, nil)
			return err
		})
		var request [20]byte
		_, err := b.Read(request[:])
		must(t, err)
		synctest.Wait()
		cancel()
		wantSaid(t, "Initiate", <-dialed, context.Canceled, "startup frame")

		e := newEnd(t, iwarp.RNICConfig{})
		e.QP, err = e.pd.CreateQP(iwarp.QPConfig{})
		must(t, err)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Recv(soon, iwarp.SGE{})
		wantSaid(t, "Recv without a connection", err, context.DeadlineExceeded, "no connection")
	})
	_, res := connect(t)
	soon, cancel := context.WithCancel(t.Context())
	call := dialInBackground(t, func() error { _, err := res.Recv(soon, iwarp.SGE{}); return err })
	until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	cancel()
	wantSaid(t, "Recv", <-call, context.Canceled, "no message has come")
}

// TestReceiverIsAdvised has Sends that cannot be received: the receiver is told what to do.
func TestReceiverIsAdvised(t *testing.T) {
	for words, posted := range map[string]int{"post one for each": -1, "as long as": 4} {
		ini, res := connect(t)
		if posted >= 0 {
			res.postRecv(1, res.mr(8, iwarp.LocalWrite).Slice(0, posted))
		}
		_ = ini.Send(within(t), ini.mr(8, 0).Slice(0, 8))
		<-res.Done()
		wantSaid(t, "the receiver", res.Err(), iwarp.ErrClosed, words)
	}
}

// TestPeerGaveUp explains the Terminate of a peer that has a reason of its own.
func TestPeerGaveUp(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	var h rdmap.Terminate
	h.Code = rdmap.CodeCatastrophicStream
	p.send(p.message(rdmap.OpTerminate, 1, h.Append(nil)))
	must(t, p.link.CloseWrite())
	<-res.Done()
	wantSaid(t, "the QP", res.Err(), iwarp.ErrClosed, "gave this connection up")
}

// TestDeregisterTwice says that the memory is gone already.
func TestDeregisterTwice(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	mr := e.mr(8, 0)
	must(t, mr.Deregister())
	wantSaid(t, "Deregister", mr.Deregister(), iwarp.ErrClosed, "the memory was deregistered")
}
