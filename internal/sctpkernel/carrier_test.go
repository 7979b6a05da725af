package sctpkernel_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/sctpkernel"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

var _ association.Carrier = (*sctpkernel.Conn)(nil)

var must, within = testrig.Must, testrig.Within

// A side is one end of an association, which notes what happens.
type side struct {
	*testing.T
	*sctpkernel.Conn
	heard chan sctp.Message
	acked chan uint64 // of stream 1
	lost  chan error
}

func newSide(t *testing.T, c *sctpkernel.Conn) *side {
	s := &side{t, c, make(chan sctp.Message, 10000), make(chan uint64, 10000), make(chan error, 1)}
	go c.Run(func(m sctp.Message) { s.heard <- m }, func(id uint16, n uint64) {
		if id == 1 {
			s.acked <- n
		}
	}, func(err error) { s.lost <- err })
	return s
}

// listen skips the test where the kernel has no SCTP.
func listen(t *testing.T, cfg sctpkernel.Config) *sctpkernel.Listener {
	t.Helper()
	ln, err := sctpkernel.Listen("sctp4", "127.0.0.1:0", cfg)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// pair opens an association. Its Listener has seen a and b.
func pair(t *testing.T) (a, b *side) {
	t.Helper()
	ln := listen(t, sctpkernel.Config{})
	c, err := dial(within(t), ln, sctpkernel.Config{})
	must(t, err)
	d, err := ln.Accept(within(t))
	must(t, err)
	return newSide(t, c), newSide(t, d)
}

func dial(ctx context.Context, ln *sctpkernel.Listener, cfg sctpkernel.Config) (*sctpkernel.Conn, error) {
	return sctpkernel.Dial(ctx, netip.AddrPort{}, ln.Addr().(sctpkernel.Addr).AddrPort, cfg)
}

func next[V any](t *testing.T, c <-chan V) (v V) {
	t.Helper()
	select {
	case v = <-c:
	case <-within(t).Done():
		t.Fatal("waited in vain")
	}
	return v
}

// TestMessages: messages keep their stream, their PPID and their bytes, are unordered, and are known to have arrived.
func TestMessages(t *testing.T) {
	a, b := pair(t)
	if a.Streams() != 16 || b.Streams() != 16 || a.MaxMessage() < sctp.MinMaxMessage || a.Ahead() < a.MaxMessage() {
		t.Errorf("%d and %d streams, messages up to %d, %d bytes ahead",
			a.Streams(), b.Streams(), a.MaxMessage(), a.Ahead())
	}
	if a.RemoteAddr().String() != b.LocalAddr().String() || a.LocalAddr().String() != b.RemoteAddr().String() {
		t.Errorf("%v to %v, and back %v to %v", a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
	}
	for i, n := range []int{1, 2, 17, 1000, a.MaxMessage()} {
		data := make([]byte, n)
		data[n-1] = byte(i)
		for _, m := range []sctp.Message{{Stream: 1, PPID: sctp.PPIDControl, Data: data},
			{Stream: 15, PPID: sctp.PPIDSegment, Data: data}} {
			must(t, a.Send(m))
			if got := next(t, b.heard); got.Stream != m.Stream || got.PPID != m.PPID || got.Ordered ||
				string(got.Data) != string(data) {
				t.Errorf("%d bytes came as %d, on stream %d with PPID %d, ordered %v",
					n, len(got.Data), got.Stream, got.PPID, got.Ordered)
			}
		}
		for next(t, a.acked) != uint64(i+1) {
		}
	}
	if err := a.Send(sctp.Message{Data: make([]byte, a.MaxMessage()+1)}); !errors.Is(err, sctp.ErrSize) {
		t.Errorf("too long: %v", err)
	}
}

// TestManyMessages: more than the send buffer holds, both ways at once, all of which arrive, and are known to have.
func TestManyMessages(t *testing.T) {
	a, b := pair(t)
	const n = 500
	for _, s := range []*side{a, b} {
		go func() {
			for i := range n {
				if err := s.Send(sctp.Message{Stream: 1, PPID: 16,
					Data: append([]byte{byte(i >> 8), byte(i)}, make([]byte, 1000)...)}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for _, s := range []*side{a, b} {
		seen := make(map[int]bool)
		for range n {
			m := next(t, s.heard)
			seen[int(m.Data[0])<<8|int(m.Data[1])] = true
		}
		if len(seen) != n {
			t.Errorf("%d different messages", len(seen))
		}
		for next(t, s.acked) != n {
		}
	}
}

// TestEnds: what each side is told of an end.
func TestEnds(t *testing.T) {
	t.Run("shutdown", func(t *testing.T) {
		a, b := pair(t)
		must(t, a.Send(sctp.Message{PPID: 16, Data: []byte("last")}))
		must(t, a.Shutdown(within(t)))
		if m := next(t, b.heard); string(m.Data) != "last" {
			t.Errorf("%q", m.Data)
		}
		if err := next(t, b.lost); !errors.Is(err, lowerlayer.ErrShutdown) {
			t.Errorf("the peer: %v", err)
		}
		next(t, a.lost)
		if err := b.Send(sctp.Message{Data: []byte("late")}); err == nil {
			t.Error("sent after the end")
		}
	})
	t.Run("abort", func(t *testing.T) {
		a, b := pair(t)
		a.Abort("because")
		if err := next(t, b.lost); !errors.Is(err, lowerlayer.ErrAborted) ||
			err.Error() != fmt.Sprintf("%v: %q", lowerlayer.ErrAborted, "because") {
			t.Errorf("the peer: %v", err)
		}
		next(t, a.lost)
	})
	t.Run("abort while it sends", func(t *testing.T) {
		a, b := pair(t)
		ended := make(chan error)
		go func() {
			for {
				if err := a.Send(sctp.Message{PPID: 16, Data: make([]byte, 500)}); err != nil {
					ended <- err
					return
				}
			}
		}()
		next(t, b.heard)
		b.Abort("enough")
		next(t, ended)
		if err := next(t, a.lost); !errors.Is(err, lowerlayer.ErrAborted) {
			t.Errorf("lost: %v", err)
		}
	})
}

// TestRefused: there are too many; the Listener has gone, and its associations have not, nor are they in another's way.
func TestRefused(t *testing.T) {
	ln := listen(t, sctpkernel.Config{MaxAssociations: 1})
	c, err := dial(within(t), ln, sctpkernel.Config{})
	must(t, err)
	d, err := ln.Accept(within(t))
	must(t, err)
	a, b := newSide(t, c), newSide(t, d)
	go ln.Accept(within(t))
	one, err := dial(within(t), ln, sctpkernel.Config{})
	if err == nil {
		err = next(t, newSide(t, one).lost)
	}
	if !errors.Is(err, lowerlayer.ErrAborted) && !errors.Is(err, lowerlayer.ErrRefused) {
		t.Errorf("one too many: %v", err)
	}
	must(t, ln.Close())
	if _, err := dial(within(t), ln, sctpkernel.Config{}); !errors.Is(err, lowerlayer.ErrRefused) {
		t.Errorf("after the Listener's end: %v", err)
	}
	must(t, a.Send(sctp.Message{PPID: 16, Data: []byte("still here")}))
	next(t, b.heard)
	again, err := sctpkernel.Listen("sctp4", ln.Addr().String(), sctpkernel.Config{})
	must(t, err)
	if two, err := sctpkernel.Listen("sctp4", ln.Addr().String(), sctpkernel.Config{}); err == nil {
		t.Errorf("two Listeners on %v", two.Addr())
	}
	must(t, again.Close())
}
