package usertcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A watched link counts the resets that its stack sends, and can be made deaf: then nothing arrives.
type watchedLink struct {
	Link
	deaf   atomic.Bool
	resets atomic.Int32
}

// Send is Link's.
func (l *watchedLink) Send(packet []byte) {
	if s, ok := parseSegment(packet); ok && s.has(header.TCPFlagRst) {
		l.resets.Add(1)
	}
	l.Link.Send(packet)
}

// Receive is Link's.
func (l *watchedLink) Receive(deliver func(packet []byte)) error {
	return l.Link.Receive(func(p []byte) {
		if !l.deaf.Load() {
			deliver(p)
		}
	})
}

// watchedStacks returns two stacks that are joined, and the link of the first.
func watchedStacks(t *testing.T, cfg Config, ab, ba Path) (a, b *Stack, of *watchedLink) {
	t.Helper()
	one, other := Pipe(1500, ab, ba)
	of = &watchedLink{Link: one}
	a, err := pairEnd(cfg, of, "192.0.2.1", "2001:db8::1")
	must(t, err)
	b, err = pairEnd(cfg, other, "192.0.2.2", "2001:db8::2")
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(a.Close(), b.Close())) })
	return a, b, of
}

// TestShutdown: what was written before a Close arrives, with the FIN, although the stack ends: on a path that is slow
// and loses packets, whichever end was the first to close.
func TestShutdown(t *testing.T) {
	slow := func(seed uint64) Path { return Path{Seed: seed, Delay: 10 * time.Millisecond, Loss: 0.1} }
	for name, first := range map[string]func(c, s *Conn) error{
		"this end first":  func(*Conn, *Conn) error { return nil },
		"the other first": func(c, s *Conn) error { _, err := io.Copy(io.Discard, c); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := stacks(t, Config{}, slow(1), slow(2))
			c, s := connect(t, a, b, "192.0.2.2:7174")
			go s.CloseWrite()
			must(t, first(c, s))
			sent := bytes.Repeat([]byte("bytes. "), 20_000)
			_, err := c.Write(sent)
			must(t, errors.Join(err, c.Close()))
			got := make(chan []byte)
			go func() {
				b, err := io.ReadAll(s)
				if err != nil {
					t.Error(err)
				}
				got <- b
			}()
			must(t, a.Shutdown(context.Background()))
			<-c.PeerAcked()
			if got := <-got; !bytes.Equal(got, sent) {
				t.Errorf("%d bytes have arrived of %d", len(got), len(sent))
			}
		})
	}
}

// TestShutdownWaits for who has not closed yet; meanwhile nothing new begins.
func TestShutdownWaits(t *testing.T) {
	a, b := stacks(t, Config{}, Path{}, Path{})
	c, s := connect(t, a, b, "192.0.2.2:7174")
	l, err := a.Listen(context.Background(), "tcp", ":0")
	must(t, err)
	done := make(chan error)
	go func() { done <- a.Shutdown(context.Background()) }()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if _, err := a.DialContext(context.Background(), "tcp", "192.0.2.2:7174"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
	if _, err := a.Listen(context.Background(), "tcp", ":0"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Listen: %v", err)
	}
	for _, from := range []*Conn{c, s} { // it goes on in both directions
		_, err := from.Write([]byte("x"))
		must(t, err)
	}
	for _, to := range []*Conn{c, s} {
		_, err := to.Read(make([]byte, 1))
		must(t, err)
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown has returned: %v", err)
	default:
	}
	must(t, c.Close())
	must(t, <-done)
	must(t, a.Shutdown(context.Background()))
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer got %v", err)
	}
}

// TestShutdownInVain: a peer whose acknowledgements do not come is waited for until the context ends, or TCP has lost
// patience.
func TestShutdownInVain(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		limit    time.Duration
		want     error
	}{
		"the context ends":   {time.Hour, 20 * time.Millisecond, context.DeadlineExceeded},
		"TCP loses patience": {time.Millisecond, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, link := watchedStacks(t, Config{CloseTimeout: c.patience,
				MaxRTO: 200 * time.Millisecond}, Path{}, Path{})
			out, _ := connect(t, a, b, "192.0.2.2:7174")
			link.deaf.Store(true)
			_, err := out.Write([]byte("x"))
			must(t, errors.Join(err, out.Close()))
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			defer cancel()
			if err := a.Shutdown(ctx); !errors.Is(err, c.want) {
				t.Errorf("Shutdown: %v", err)
			}
			<-out.PeerAcked() // that it never will
		})
	}
}

// TestNotLeft: a connection that is lost has nothing to be waited for, though nobody has closed it.
func TestNotLeft(t *testing.T) {
	a, b := stacks(t, Config{}, Path{}, Path{})
	c, s := connect(t, a, b, "192.0.2.2:7174")
	must(t, s.Reset())
	must(t, a.Shutdown(t.Context()))
	<-c.PeerAcked()
}

// TestEndsInSilence: a peer that has acknowledged everything is not reset at the end of the stack: it would take an
// orderly end for another.
func TestEndsInSilence(t *testing.T) {
	a, b, link := watchedStacks(t, Config{}, Path{}, Path{})
	c, s := connect(t, a, b, "192.0.2.2:7174")
	_, err := c.Write([]byte("x"))
	must(t, errors.Join(err, c.Close()))
	must(t, a.Shutdown(t.Context()))
	if got, err := io.ReadAll(s); string(got) != "x" || err != nil {
		t.Errorf("the peer got %q, %v", got, err)
	}
	if n := link.resets.Load(); n != 0 {
		t.Errorf("%d resets were sent", n)
	}
}

// TestTold: the peer has all of a half that was closed, while the other half goes on. What it acknowledges is counted
// before.
func TestTold(t *testing.T) {
	c, s := connection(t, Config{}, Path{Delay: time.Millisecond}, Path{})
	before := c.AckProgress()
	_, err := c.Write(make([]byte, 1000))
	must(t, errors.Join(err, c.CloseWrite()))
	<-c.PeerAcked()
	if n := c.AckProgress() - before; n != 1001 {
		t.Errorf("%d bytes are acknowledged, want 1000 and the FIN", n)
	}
	_, err = s.Write([]byte("x"))
	must(t, err)
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	select {
	case <-s.PeerAcked():
		t.Error("the other end has nothing acknowledged")
	default:
	}
}

// TestShutdownAfterBothFINs: of a connection that both ends have ended in order there is nothing to wait for, when it
// has been closed: not for the time that TCP waits for late segments.
func TestShutdownAfterBothFINs(t *testing.T) {
	c, s := connection(t, Config{}, Path{}, Path{})
	for _, end := range []struct{ from, to *Conn }{{c, s}, {s, c}} {
		must(t, end.from.CloseWrite())
		if _, err := end.to.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("got %v", err)
		}
	}
	for _, end := range []*Conn{c, s} {
		<-end.PeerAcked()
		must(t, end.Close())
		must(t, end.stack.Shutdown(testrig.Within(t)))
	}
}
