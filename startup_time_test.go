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

// respondOverPipe is a Responder that has the Request of a peer, and the peer, which does
// its part in the background.
func respondOverPipe(ctx context.Context, t *testing.T, cfg iwarp.ListenConfig, part func(*peer)) (*peer, *iwarp.Request) {
	t.Helper()
	a, b := newPipe(t)
	p := newPeer(t, a)
	p.meanwhile(func() { part(p) })
	req, err := iwarp.Respond(ctx, b, nil, cfg)
	must(t, err)
	return p, req
}

// askOverPipe is respondOverPipe with a peer that sends its first frame.
func askOverPipe(ctx context.Context, t *testing.T, cfg iwarp.ListenConfig, first []byte) (*peer, *iwarp.Request) {
	t.Helper()
	return respondOverPipe(ctx, t, cfg, func(p *peer) { p.send(first) })
}

// initiateTo does the same as respondTo with an Initiator.
func initiateTo(ctx context.Context, t *testing.T, d iwarp.Dialer) (*peer, <-chan error) {
	a, b := newPipe(t)
	return newPeer(t, a), dialInBackground(t, func() error {
		_, err := d.Initiate(ctx, b, nil)
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

// TestDialerTimeout bounds the whole attempt by Timeout or by the context. The error tells what was
// awaited, and is a timeout of the startup and of the context in one.
//
// Proves Q12.
func TestDialerTimeout(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialer  iwarp.Dialer
		context time.Duration
		want    time.Duration
	}{
		{"Timeout", iwarp.Dialer{Timeout: 3 * time.Second}, time.Hour, 3 * time.Second},
		{"context", iwarp.Dialer{}, 4 * time.Second, 4 * time.Second},
		{"context, without a timeout of MPA's", iwarp.Dialer{MPA: mpa.Offer{Timeout: -1}}, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.context)
			defer cancel()
			began := time.Now()
			p, outcome := initiateTo(ctx, t, c.dialer)
			p.wantFrame(mpa.KeyRequest)
			err := <-outcome
			wantTimeout(t, err, "no MPA Reply Frame within "+c.want.String()+": nothing arrived")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v, which is not of the context", c.name, err)
			}
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: took %v", c.name, took)
			}
		})
	}
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
		should(t, <-outcome)
		trickling.Wait()
	})
}

// TestCancel ends the context at each step of both roles: the call returns at
// once, the connection is closed and no more is heard of it.
func TestCancel(t *testing.T) {
	cancelAfter := func(sent []byte, start func(context.Context, *testing.T) (*peer, <-chan error)) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p, outcome := start(ctx, t)
			if len(sent) > 0 {
				p.send(sent)
			}
			synctest.Wait()
			cancel()
			if err := <-outcome; !errors.Is(err, context.Canceled) {
				t.Errorf("after %d octets: %v", len(sent), err)
			}
			p.wantClosed()
		})
	}
	responder := func(ctx context.Context, t *testing.T) (*peer, <-chan error) {
		return respondTo(ctx, t, iwarp.ListenConfig{})
	}
	unheard := func(ctx context.Context, t *testing.T) (*peer, <-chan error) {
		return initiateTo(ctx, t, iwarp.Dialer{})
	}
	initiator := func(ctx context.Context, t *testing.T) (*peer, <-chan error) {
		p, outcome := unheard(ctx, t)
		p.wantFrame(mpa.KeyRequest)
		return p, outcome
	}
	cancelAfter(nil, unheard) // the peer does not even read the Request
	for cut := range frame(request(2)) {
		cancelAfter(frame(request(2))[:cut], responder)
	}
	for cut := range frame(reply(2)) {
		cancelAfter(frame(reply(2))[:cut], initiator)
	}
}

// TestCancelAccept ends the context while the Reply finds no reader.
func TestCancelAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, req := askOverPipe(t.Context(), t, iwarp.ListenConfig{}, frame(request(2)))
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
			p, req := askOverPipe(t.Context(), t, iwarp.ListenConfig{}, frame(request(2)))
			var err error
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
