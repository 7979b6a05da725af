package startup_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/startup"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

func startupFrame(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

func request(rev uint8) []byte {
	return startupFrame(mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: rev})
}

func reply(rev uint8) []byte {
	return startupFrame(mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: rev})
}

// An exchange is a startup phase under test. conn is the peer's end of the connection.
type exchange struct {
	t       *testing.T
	conn    net.Conn
	outcome chan error
	trace   []string
}

// initiate starts an Initiator of revision 1.
func initiate(ctx context.Context, t *testing.T, timeout time.Duration) *exchange {
	t.Helper()
	m, err := mpa.NewInitiator(mpa.Offer{Dialect: mpa.DialectRFC5044, Timeout: timeout})
	testrig.Must(t, err)
	return startExchange(ctx, t, m, func() []byte { return m.Start(time.Now()) })
}

// respond starts a Responder.
func respond(ctx context.Context, t *testing.T, cfg mpa.ResponderConfig) *exchange {
	m := mpa.NewResponder(cfg)
	return startExchange(ctx, t, m, func() []byte { m.Start(time.Now()); return nil })
}

func startExchange(ctx context.Context, t *testing.T, m startup.Machine, start func() []byte) *exchange {
	a, b := net.Pipe()
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	e := &exchange{t: t, conn: a, outcome: make(chan error, 1)}
	p := startup.Phase{Conn: b, Trace: func(sent bool, frame []byte) {
		dir := "received "
		if sent {
			dir = "sent "
		}
		e.trace = append(e.trace, dir+mpa.StartupFrame(frame).Key())
	}}
	go func() { e.outcome <- p.Exchange(ctx, m, start()) }()
	return e
}

func (e *exchange) send(b []byte) {
	e.t.Helper()
	if _, err := e.conn.Write(b); err != nil {
		e.t.Fatal(err)
	}
}

func (e *exchange) want(b []byte) {
	e.t.Helper()
	got := make([]byte, len(b))
	if _, err := io.ReadFull(e.conn, got); err != nil || !bytes.Equal(got, b) {
		e.t.Fatalf("got % x (%v), want % x", got, err, b)
	}
}

// TestExchange: each frame leaves in one write, arrives in any split, and not a byte after the last is
// read.
//
// Proves Q13.
func TestExchange(t *testing.T) {
	for split := range mpa.StartupHeaderLen {
		synctest.Test(t, func(t *testing.T) {
			e := initiate(t.Context(), t, 0)
			whole := make([]byte, 100)
			if n, err := e.conn.Read(whole); err != nil || !bytes.Equal(whole[:n], request(1)) {
				t.Fatalf("got % x (%v) in one piece", whole[:n], err)
			}
			if split > 0 {
				e.send(reply(1)[:split])
			}
			e.send(reply(1)[split:])
			testrig.Must(t, <-e.outcome)
			_ = e.conn.SetWriteDeadline(time.Now().Add(time.Hour))
			if n, err := e.conn.Write([]byte("FPDU")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%d bytes after the Reply were read (%v)", n, err)
			}
			if got := strings.Join(e.trace, ", "); got != "sent "+mpa.KeyRequest+", received "+mpa.KeyReply {
				t.Errorf("traced %q", got)
			}
		})
	}
}

// TestContext ends a context while a frame is awaited: a deadline gives the startup's error for it,
// cancellation the context's own.
//
// Proves Q12.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // longer than any limit of ours
		defer cancel()
		e := respond(ctx, t, mpa.ResponderConfig{Timeout: -1})
		began := time.Now()
		err := <-e.outcome
		var s *mpa.StartupError
		if !errors.As(err, &s) || s.Failure != mpa.FailureTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e := initiate(ctx, t, 0)
		e.want(request(1))
		synctest.Wait()
		cancel()
		if err := <-e.outcome; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "startup frame") {
			t.Errorf("got %v", err)
		}
	})
}

// TestTimeout is the machine's own.
//
// Proves Q12.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := initiate(t.Context(), t, 7*time.Second)
		e.want(request(1))
		began := time.Now()
		err := <-e.outcome
		if want := "no MPA Reply Frame within 7s"; err == nil || !strings.Contains(err.Error(), want) ||
			time.Since(began) != 7*time.Second {
			t.Errorf("got %v after %v, want %q", err, time.Since(began), want)
		}
	})
}

// TestPeerCloses: the end of the connection is the machine's business too.
func TestPeerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := initiate(t.Context(), t, 0)
		e.want(request(1))
		e.send(reply(1)[:5])
		_ = e.conn.Close()
		var s *mpa.StartupError
		if err := <-e.outcome; !errors.As(err, &s) || s.Failure != mpa.FailureClosed || !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	})
}

// failing is a connection that fails by itself.
type failing struct {
	net.Conn
	err error
}

func (c failing) Read([]byte) (int, error) { return 0, c.err }

// TestConnectionFails: only what says that the peer has gone is taken for its close, on which an Initiator of
// revision 2 falls back. Any other error of the connection is told as what it is.
//
// Proves E13.
func TestConnectionFails(t *testing.T) {
	for err, gone := range map[error]bool{
		io.EOF: true, io.ErrUnexpectedEOF: true, syscall.EPIPE: true, syscall.ECONNRESET: true,
		syscall.ECONNABORTED: true,
		net.ErrClosed:        false, errors.New("untrusted"): false,
	} {
		m, _ := mpa.NewInitiator(mpa.Offer{})
		a, b := net.Pipe()
		go io.Copy(io.Discard, b)
		wrapped := &net.OpError{Op: "read", Err: err}
		got := startup.Phase{Conn: failing{a, wrapped}}.Exchange(t.Context(), m, m.Start(time.Now()))
		_, _ = a.Close(), b.Close()
		var s *mpa.StartupError
		if !errors.Is(got, err) || errors.As(got, &s) != gone || gone &&
			(s.Failure != mpa.FailureClosed || !s.Fallback) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestLastWords: a Responder that does not serve revision 0 answers with its own revision before it
// returns the error.
//
// Proves N04.
func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := respond(t.Context(), t, mpa.ResponderConfig{Kind: mpa.KindNonPermissive})
		e.send(request(0))
		e.want(reply(1))
		var s *mpa.StartupError
		if err := <-e.outcome; !errors.As(err, &s) || s.Failure != mpa.FailureRevision {
			t.Errorf("got %v", err)
		}
	})
}

// TestUnread: a last frame that nobody reads, and a last message of the streaming mode, have five
// seconds.
//
// Proves Q12.
func TestUnread(t *testing.T) {
	for name, write := range map[string]func(context.Context, startup.Phase, *mpa.Responder) error{
		"last frame": func(ctx context.Context, p startup.Phase, m *mpa.Responder) error {
			return p.Exchange(ctx, m, reply(1))
		},
		"message": func(ctx context.Context, p startup.Phase,
			_ *mpa.Responder) error {
			return p.Send(ctx, []byte("bye"))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, b := net.Pipe()
			m := mpa.NewResponder(mpa.ResponderConfig{}) // not started: it wants nothing
			began := time.Now()
			if err := write(t.Context(), startup.Phase{Conn: b}, m); !errors.Is(err, os.ErrDeadlineExceeded) ||
				time.Since(began) != 5*time.Second {
				t.Errorf("%s: got %v after %v", name, err, time.Since(began))
			}
		})
	}
}

// TestTurnDown sends what there is to say and closes, though the peer says nothing.
func TestTurnDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		go startup.Phase{Conn: b}.TurnDown(t.Context(), []byte("Terminate"))
		if got, err := io.ReadAll(a); string(got) != "Terminate" || err != nil {
			t.Errorf("got %q (%v)", got, err)
		}
	})
}

// TestTurnDownInVain: to a peer that is gone, or when the context has ended, nothing is said, and
// nobody waits.
func TestTurnDownInVain(t *testing.T) {
	for _, gone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			a, b := net.Pipe()
			if gone {
				_ = a.Close()
			} else {
				end()
			}
			began := time.Now()
			startup.Phase{Conn: b}.TurnDown(ctx, []byte("Terminate"))
			if waited := time.Since(began); waited > 0 {
				t.Errorf("gone %t: after %v", gone, waited)
			}
			if _, err := b.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("gone %t: not closed: %v", gone, err)
			}
		})
	}
}

// TestLastWordsInVain: when the peer is gone before it has heard that the revisions differ, that is
// still the error.
func TestLastWordsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := respond(t.Context(), t, mpa.ResponderConfig{Kind: mpa.KindNonPermissive})
		e.send(request(0))
		_ = e.conn.Close()
		var s *mpa.StartupError
		if err := <-e.outcome; !errors.As(err, &s) || s.Failure != mpa.FailureRevision {
			t.Errorf("got %v", err)
		}
	})
}

// TestSilentTLS has a peer of TLS say nothing: the startup's time is over before TLS has begun, and what has not come
// is no Request.
func TestSilentTLS(t *testing.T) {
	for name, wrap := range map[string]func(*tls.Conn) net.Conn{
		"TLS":   func(c *tls.Conn) net.Conn { return c },
		"above": func(c *tls.Conn) net.Conn { return above{c} },
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			defer b.Close()
			m := mpa.NewResponder(mpa.ResponderConfig{})
			m.Start(time.Now())
			err := startup.Phase{Conn: wrap(tls.Server(b, new(tls.Config)))}.Exchange(t.Context(), m, nil)
			var failed *mpa.StartupError
			if !errors.As(err, &failed) || failed.Failure != mpa.FailureTimeout ||
				!strings.Contains(err.Error(), "TLS handshake") || strings.Contains(err.Error(), "Initiator") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// above is a connection over one of TLS that tells which.
type above struct{ net.Conn }

func (a above) NetConn() net.Conn { return a.Conn }
