package iwarp_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// respondTo starts a Responder on one end of a pipe and returns the other, and
// where its outcome will be.
func respondTo(ctx context.Context, t *testing.T, cfg iwarp.ListenConfig) (*peer, <-chan error) {
	a, b := newPipe(t)
	return newPeer(t, a), dialInBackground(t, func() error {
		_, err := iwarp.Respond(ctx, b, nil, cfg)
		return err
	})
}

// initiateTo does the same with an Initiator.
func initiateTo(ctx context.Context, t *testing.T, d iwarp.Dialer) (*peer, <-chan error) {
	a, b := newPipe(t)
	return newPeer(t, a), dialInBackground(t, func() error {
		_, err := d.Initiate(ctx, b)
		return err
	})
}

// wantTimeout checks the forms in which a timeout is reported.
func wantTimeout(t *testing.T, err error, text string) {
	t.Helper()
	var s *mpa.StartupError
	var n net.Error
	switch {
	case !errors.As(err, &s) || s.Failure != mpa.FailureTimeout:
		t.Errorf("got %v, want a timeout", err)
	case !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &n) || !n.Timeout():
		t.Errorf("not a timeout as the net package has it: %v", err)
	case !strings.HasPrefix(err.Error(), "iwarp: ") || !strings.Contains(err.Error(), text):
		t.Errorf("got %q, want %q in it", err, text)
	}
}

// TestRequestTimeout keeps a Responder waiting for its Request.
//
// Proves Q12, Q03.
func TestRequestTimeout(t *testing.T) {
	whole := frame(request(2))
	for _, c := range []struct {
		sent  int
		limit time.Duration
		want  time.Duration
		text  string
	}{
		{0, 0, 5 * time.Second, "Responder/Responder startup"},
		{1, 0, 5 * time.Second, "stopped in the middle"},
		{len(whole) - 1, 0, 5 * time.Second, "stopped in the middle"},
		{0, time.Minute, time.Minute, "Responder/Responder startup"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{RequestTimeout: c.limit})
			began := time.Now()
			if c.sent > 0 {
				p.send(whole[:c.sent])
			}
			wantTimeout(t, <-outcome, c.text)
			if took := time.Since(began); took != c.want {
				t.Errorf("after %d octets: took %v, want %v", c.sent, took, c.want)
			}
			p.wantClosed()
		})
	}
}

// TestReplyTimeout keeps an Initiator waiting for its Reply.
//
// Proves Q12.
func TestReplyTimeout(t *testing.T) {
	for _, c := range []struct {
		dialer iwarp.Dialer
		reads  bool // the peer reads the Request
		want   time.Duration
	}{
		{iwarp.Dialer{}, true, 10 * time.Second},
		{iwarp.Dialer{}, false, 10 * time.Second},
		{iwarp.Dialer{MPA: mpa.Offer{Timeout: time.Hour}}, true, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p, outcome := initiateTo(t.Context(), t, c.dialer)
			if c.reads {
				p.wantFrame(mpa.KeyRequest)
			}
			wantTimeout(t, <-outcome, "no MPA Reply Frame within")
			if took := time.Since(began); took != c.want {
				t.Errorf("took %v, want %v", took, c.want)
			}
			p.conn.Close()
		})
	}
}

// TestDialerTimeout bounds the whole attempt.
//
// Proves Q12.
func TestDialerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{Timeout: 3 * time.Second})
		p.wantFrame(mpa.KeyRequest)
		if err := <-outcome; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestOneOctetASecond has a peer send its startup frame one octet a second: it is
// as late as one that sends nothing.
//
// Proves Q12.
func TestOneOctetASecond(t *testing.T) {
	var trickling sync.WaitGroup
	trickle := func(p *peer, b []byte) {
		for i := range b {
			if _, err := p.conn.Write(b[i : i+1]); err != nil {
				return
			}
			time.Sleep(time.Second) // of virtual time
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{})
		trickling.Go(func() { trickle(p, frame(request(2))) })
		wantTimeout(t, <-outcome, "octets of a key")
		trickling.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{})
		p.wantFrame(mpa.KeyRequest)
		trickling.Go(func() { trickle(p, frame(reply(2))) })
		wantTimeout(t, <-outcome, "octets of a key")
		trickling.Wait()
	})
	synctest.Test(t, func(t *testing.T) { // and with all the time it takes
		p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{RequestTimeout: -1})
		trickling.Go(func() { trickle(p, frame(request(2))) })
		if err := <-outcome; err != nil {
			t.Error(err)
		}
		trickling.Wait()
	})
}

// TestCancel ends the context at each step of both roles: the call returns at
// once, the connection is closed and no more is heard of it.
func TestCancel(t *testing.T) {
	req, rep := frame(request(2)), frame(reply(2))
	for cut := range len(req) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p, outcome := respondTo(ctx, t, iwarp.ListenConfig{})
			if cut > 0 {
				p.send(req[:cut])
			}
			synctest.Wait()
			cancel()
			if err := <-outcome; !errors.Is(err, context.Canceled) {
				t.Errorf("Responder, after %d octets: %v", cut, err)
			}
			p.wantClosed()
		})
	}
	for cut := -1; cut < len(rep); cut++ {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p, outcome := initiateTo(ctx, t, iwarp.Dialer{})
			if cut >= 0 {
				p.wantFrame(mpa.KeyRequest)
			}
			if cut > 0 {
				p.send(rep[:cut])
			}
			synctest.Wait()
			cancel()
			if err := <-outcome; !errors.Is(err, context.Canceled) {
				t.Errorf("Initiator, after %d octets: %v", cut, err)
			}
			p.wantClosed()
		})
	}
}

// TestCancelAccept ends the context while the Reply finds no reader.
func TestCancelAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe(t)
		p := newPeer(t, a)
		go p.send(frame(request(2)))
		req, err := iwarp.Respond(t.Context(), b, nil, iwarp.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		outcome := dialInBackground(t, func() error {
			_, err := req.Accept(ctx, iwarp.AcceptConfig{})
			return err
		})
		synctest.Wait()
		cancel()
		if err := <-outcome; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.wantClosed()
	})
}

// TestReplyUnread has an Initiator that never reads its Reply: the Responder does
// not wait for ever.
//
// Proves Q12.
func TestReplyUnread(t *testing.T) {
	for _, reject := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := newPipe(t)
			p := newPeer(t, a)
			go p.send(frame(request(2)))
			req, err := iwarp.Respond(t.Context(), b, nil, iwarp.ListenConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if reject {
				_, err = req.Reject(nil)
			} else {
				_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			p.wantClosed()
		})
	}
}
