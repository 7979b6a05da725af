package startup

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
)

// respondTo starts a Responder on one end of a pipe and returns the other, and
// where its outcome will be.
func respondTo(ctx context.Context, t *testing.T, cfg iwarp.ListenConfig) (*rig.Peer, <-chan error) {
	a, b := rig.NewPipe(t)
	return rig.NewPeer(t, a), rig.DialInBackground(t, func() error {
		_, err := cfg.Respond(ctx, b, nil)
		return err
	})
}

// initiateTo does the same as respondTo with an Initiator.
func initiateTo(ctx context.Context, t *testing.T, d iwarp.Dialer) (*rig.Peer, <-chan error) {
	a, b := rig.NewPipe(t)
	return rig.NewPeer(t, a), rig.DialInBackground(t, func() error {
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
	whole := rig.Frame(rig.Request(2))
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
				p.Send(whole[:c.sent])
			}
			wantTimeout(t, <-outcome, c.text)
			if took := time.Since(began); took != c.want {
				t.Errorf("after %d bytes: took %v, want %v", c.sent, took, c.want)
			}
			p.WantClosed()
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
				p.WantFrame(mpa.KeyRequest)
			}
			wantTimeout(t, <-outcome, "no MPA Reply Frame within")
			if took := time.Since(began); took != c.want {
				t.Errorf("took %v, want %v", took, c.want)
			}
			p.Conn.Close()
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
			p.WantFrame(mpa.KeyRequest)
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

// TestOneByteASecond has a peer send its startup frame one byte a second: it is
// as late as one that sends nothing.
//
// Proves Q12.
func TestOneByteASecond(t *testing.T) {
	var trickling sync.WaitGroup
	trickle := func(p *rig.Peer, b []byte) {
		for i := range b {
			if _, err := p.Conn.Write(b[i : i+1]); err != nil {
				return
			}
			time.Sleep(time.Second) // of virtual time
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{})
		trickling.Go(func() { trickle(p, rig.Frame(rig.Request(2))) })
		wantTimeout(t, <-outcome, "bytes of a key")
		trickling.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{})
		p.WantFrame(mpa.KeyRequest)
		trickling.Go(func() { trickle(p, rig.Frame(rig.Reply(2))) })
		wantTimeout(t, <-outcome, "bytes of a key")
		trickling.Wait()
	})
	synctest.Test(t, func(t *testing.T) { // and with all the time it takes
		p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{RequestTimeout: -1})
		trickling.Go(func() { trickle(p, rig.Frame(rig.Request(2))) })
		rig.Should(t, <-outcome)
		trickling.Wait()
	})
}

// TestCancel ends the context at each step of both roles: the call returns at
// once, the connection is closed and no more is heard of it.
func TestCancel(t *testing.T) {
	cancelAfter := func(sent []byte, start func(context.Context, *testing.T) (*rig.Peer, <-chan error)) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p, outcome := start(ctx, t)
			if len(sent) > 0 {
				p.Send(sent)
			}
			synctest.Wait()
			cancel()
			if err := <-outcome; !errors.Is(err, context.Canceled) {
				t.Errorf("after %d bytes: %v", len(sent), err)
			}
			p.WantClosed()
		})
	}
	responder := func(ctx context.Context, t *testing.T) (*rig.Peer, <-chan error) {
		return respondTo(ctx, t, iwarp.ListenConfig{})
	}
	unheard := func(ctx context.Context, t *testing.T) (*rig.Peer, <-chan error) {
		return initiateTo(ctx, t, iwarp.Dialer{})
	}
	initiator := func(ctx context.Context, t *testing.T) (*rig.Peer, <-chan error) {
		p, outcome := unheard(ctx, t)
		p.WantFrame(mpa.KeyRequest)
		return p, outcome
	}
	cancelAfter(nil, unheard) // the peer does not even read the Request
	for cut := range rig.Frame(rig.Request(2)) {
		cancelAfter(rig.Frame(rig.Request(2))[:cut], responder)
	}
	for cut := range rig.Frame(rig.Reply(2)) {
		cancelAfter(rig.Frame(rig.Reply(2))[:cut], initiator)
	}
}

// TestCancelAccept ends the context while the Reply finds no reader.
func TestCancelAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, req := rig.AskOverPipe(t.Context(), t, iwarp.ListenConfig{}, rig.Frame(rig.Request(2)))
		ctx, cancel := context.WithCancel(t.Context())
		outcome := rig.DialInBackground(t, func() error {
			_, err := req.Accept(ctx, iwarp.AcceptConfig{})
			return err
		})
		synctest.Wait()
		cancel()
		if err := <-outcome; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.WantClosed()
	})
}

// TestReplyUnread has an Initiator that never reads its Reply: the Responder does
// not wait for ever.
//
// Proves Q12.
func TestReplyUnread(t *testing.T) {
	for _, reject := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, req := rig.AskOverPipe(t.Context(), t, iwarp.ListenConfig{}, rig.Frame(rig.Request(2)))
			var err error
			if reject {
				err = req.Reject(nil)
			} else {
				_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			p.WantClosed()
		})
	}
}

// A lapsing context is one whose deadline passes when the test says so, and that does not
// notice.
type lapsing struct {
	context.Context
	at   time.Time
	over atomic.Bool
}

func (c *lapsing) Deadline() (time.Time, bool) {
	if c.over.Load() {
		return time.Unix(1, 0), true
	}
	return c.at, true
}

// TestDialLapsed dials with a context that is over, or whose deadline passes while the TCP
// connection is opened: errors.Is finds the context's error, and it is a timeout, even if the
// socket's deadline comes before the context's.
func TestDialLapsed(t *testing.T) {
	ln := rig.ListenTCP(t)
	over, cancel := context.WithDeadline(rig.Within(t), time.Unix(1, 0))
	defer cancel()
	between := &lapsing{Context: rig.Within(t), at: time.Now().Add(time.Hour)}
	opening := func(_, _ string, _ syscall.RawConn) error {
		between.over.Store(true)
		return nil
	}
	for _, c := range []struct {
		name    string
		ctx     context.Context
		network string
		dialer  iwarp.Dialer
	}{
		{"over", over, "tcp", iwarp.Dialer{}},
		{"over, SCTP", over, "sctp", iwarp.Dialer{Network: new(iwarpsctp.Network)}},
		{"Timeout over", rig.Within(t), "tcp", iwarp.Dialer{Timeout: 1}},
		{"over before the context knows", between, "tcp", iwarp.Dialer{Net: net.Dialer{Control: opening}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == between && runtime.GOOS != "linux" {
				t.Skip("connect may succeed at once, and then does not look at the deadline")
			}
			_, err := c.dialer.Dial(c.ctx, c.network, ln.Addr().String())
			var n net.Error
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &n) || !n.Timeout() {
				t.Errorf("got %v", err)
			}
		})
	}
}
