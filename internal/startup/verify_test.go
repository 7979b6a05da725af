package startup_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/startup"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A watched connection tells what is done with it, besides reading.
type watched struct {
	net.Conn
	fin    chan struct{} // closed by a FIN
	writes int

	mu       sync.Mutex // a context that ends sets a deadline from a goroutine of its own
	deadline time.Time  // the last one set
	settings int        // how often one was set
}

func watch(c net.Conn) *watched { return &watched{Conn: c, fin: make(chan struct{})} }

func (w *watched) CloseWrite() error { close(w.fin); return nil }

func (w *watched) Write(b []byte) (int, error) { w.writes++; return w.Conn.Write(b) }

func (w *watched) SetDeadline(t time.Time) error {
	w.mu.Lock()
	w.deadline, w.settings = t, w.settings+1
	w.mu.Unlock()
	return w.Conn.SetDeadline(t)
}

// begun starts a machine over a watched connection; verify may be nil.
func begun(ctx context.Context, t *testing.T, m startup.Machine, first []byte, verify func() error) (peer net.Conn,
	w *watched, outcome chan error) {
	a, b := net.Pipe()
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	w, outcome = watch(b), make(chan error, 1)
	p := startup.Phase{Conn: w, Verify: verify, Trace: func(_ bool, frame []byte) {
		if len(frame) == 0 {
			t.Error("a trace of nothing")
		}
	}}
	go func() { outcome <- p.Exchange(ctx, m, first) }()
	return a, w, outcome
}

// started returns an Initiator of revision 1 and its Request.
func started(t *testing.T) (*mpa.Initiator, []byte) {
	m, err := mpa.NewInitiator(mpa.Offer{Dialect: mpa.DialectRFC5044})
	testrig.Must(t, err)
	return m, m.Start(time.Now())
}

// TestVerify: the consumer is asked once, when the Reply is there, and may refuse. Nobody is
// asked about a Reply that did not come, or after our own. In any case no deadline is left
// on the connection, which stays open.
func TestVerify(t *testing.T) {
	refusal := errors.New("not this one")
	for _, answer := range []error{nil, refusal} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			m, first := started(t)
			peer, w, outcome := begun(t.Context(), t, m, first, func() error { asked++; return answer })
			_, _ = io.ReadFull(peer, first)
			_, _ = peer.Write(reply(1)[:7])
			synctest.Wait()
			if asked > 0 || w.deadline.IsZero() {
				t.Error("asked before the Reply was there")
			}
			_, _ = peer.Write(reply(1)[7:])
			if err := <-outcome; err != answer || asked != 1 || !w.deadline.IsZero() || w.writes != 1 {
				t.Errorf("got %v, asked %d times, deadline %v, %d writes", err, asked, w.deadline, w.writes)
			}
			go func() { _, _ = w.Conn.Write([]byte("more")) }()
			if _, err := io.ReadFull(peer, make([]byte, 4)); err != nil {
				t.Errorf("the connection is not open: %v", err)
			}
		})
	}
	never := func() error { t.Error("asked without a Reply"); return nil }
	synctest.Test(t, func(t *testing.T) {
		m, first := started(t)
		peer, _, outcome := begun(t.Context(), t, m, first, never)
		_, _ = io.ReadFull(peer, first)
		_, _ = peer.Write([]byte("HTTP/1.1 400 Bad"))
		if err := <-outcome; err == nil {
			t.Error("no error")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		peer, w, outcome := begun(t.Context(), t, mpa.NewResponder(mpa.ResponderConfig{}), reply(1), never)
		_, _ = io.ReadFull(peer, reply(1))
		if err := <-outcome; err != nil || !w.deadline.IsZero() {
			t.Errorf("%v, deadline %v", err, w.deadline)
		}
	})
}

// TestLinger: our last words are followed by a FIN, and what the peer sends meanwhile is
// read until it closes too. Other errors than that of the revision send no FIN, and nothing
// sends an empty write.
//
// Proves N04.
func TestLinger(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(ctx context.Context, w *watched)
		hears []byte // what goes to our end
		says  []byte
	}{
		"farewell": {func(ctx context.Context, w *watched) {
			m := mpa.NewResponder(mpa.ResponderConfig{Kind: mpa.KindNonPermissive})
			m.Start(time.Now())
			said := 0
			p := startup.Phase{Conn: w, Trace: func(sent bool, frame []byte) {
				if sent {
					said += len(frame)
				}
			}}
			_ = p.Exchange(ctx, m, nil)
			if said != mpa.StartupHeaderLen {
				t.Errorf("traced %d bytes", said)
			}
		}, request(0), reply(1)},
		"Terminate": {func(ctx context.Context,
			w *watched) {
			startup.Phase{Conn: w}.TurnDown(ctx, []byte("Terminate"))
		}, nil, []byte("Terminate")},
		"without words": {func(ctx context.Context,
			w *watched) {
			startup.Phase{Conn: w}.TurnDown(ctx, nil)
		}, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			w, done := watch(b), make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { defer close(done); c.begin(ctx, w) }()
			if len(c.hears) > 0 {
				_, _ = a.Write(c.hears)
			}
			said := make([]byte, len(c.says))
			_, _ = io.ReadFull(a, said)
			<-w.fin
			if _, err := a.Write([]byte("on its way")); string(said) != string(c.says) || err != nil {
				t.Errorf("%s: said %q, then %v", name, said, err)
			}
			synctest.Wait()
			select {
			case <-done:
				t.Errorf("%s: over before the peer closed", name)
			default:
			}
			_ = a.Close()
			<-done
			if want := min(len(c.says), 1); w.writes != want {
				t.Errorf("%s: %d writes", name, w.writes)
			}
			settings := w.settings
			cancel()
			if synctest.Wait(); w.settings != settings {
				t.Errorf("%s: the context is still watched", name)
			}
			_ = b.Close()
		})
	}
	synctest.Test(t, func(t *testing.T) { // an Initiator has no last words
		m, first := started(t)
		peer, w, outcome := begun(t.Context(), t, m, first, nil)
		_, _ = io.ReadFull(peer, first)
		_, _ = peer.Write(startupFrame(mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 7}))
		<-w.fin
		_ = peer.Close()
		var s *mpa.StartupError
		if err := <-outcome; !errors.As(err, &s) || s.Failure != mpa.FailureRevision || w.writes != 1 {
			t.Errorf("%v, %d writes", err, w.writes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m, first := started(t)
		ctx, cancel := context.WithCancel(t.Context())
		peer, w, outcome := begun(ctx, t, m, first, nil)
		_, _ = io.ReadFull(peer, first)
		_, _ = peer.Write([]byte("HTTP/1.1 400 Bad"))
		err := <-outcome
		settings := w.settings
		cancel()
		synctest.Wait()
		select {
		case <-w.fin:
			t.Errorf("a FIN after %v", err)
		default:
			if err == nil || w.settings != settings {
				t.Errorf("%v; the context is still watched: %t", err, w.settings != settings)
			}
		}
	})
}

// TestEndedContext: nothing is written with a context that has ended, and what ends while
// a last frame is written is the context, not the startup.
//
// Proves Q12.
func TestEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	synctest.Test(t, func(t *testing.T) {
		_, b := net.Pipe()
		w := watch(b)
		if err := (startup.Phase{Conn: w}).Send(ended, []byte("bye")); err != context.Canceled || w.writes > 0 {
			t.Errorf("got %v after %d writes", err, w.writes)
		}
	})
	for name, write := range map[string]func(context.Context, startup.Phase) error{
		"frame": func(ctx context.Context, p startup.Phase) error {
			return p.Exchange(ctx, mpa.NewResponder(mpa.ResponderConfig{}), reply(1))
		},
		"message": func(ctx context.Context, p startup.Phase) error { return p.Send(ctx, []byte("bye")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			_, b := net.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := write(ctx, startup.Phase{Conn: b}); err != context.DeadlineExceeded {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a write that fails while the context goes on
		a, b := net.Pipe()
		_ = a.Close()
		w := watch(b)
		ctx, cancel := context.WithCancel(t.Context())
		err := (startup.Phase{Conn: w}).Send(ctx, []byte("bye"))
		settings := w.settings
		cancel()
		if synctest.Wait(); !errors.Is(err, io.ErrClosedPipe) || w.settings != settings {
			t.Errorf("%v; the context is still watched: %t", err, w.settings != settings)
		}
	})
}

// A hasty connection ends reads before their deadline, as the system's clock may.
type hasty struct{ net.Conn }

func (hasty) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestHastyDeadline: a read that ends before the machine's deadline ends the startup all the
// same.
func TestHastyDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := net.Pipe()
		m := mpa.NewResponder(mpa.ResponderConfig{})
		m.Start(time.Now())
		var s *mpa.StartupError
		if err := (startup.Phase{Conn: hasty{b}}).Exchange(t.Context(), m, nil); !errors.As(err, &s) ||
			s.Failure != mpa.FailureTimeout {
			t.Errorf("got %v", err)
		}
	})
}
