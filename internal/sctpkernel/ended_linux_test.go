package sctpkernel

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// dialed opens an association with a Listener, up to where it can be peeled off.
func dialed(ctx context.Context, t *testing.T, l *Listener) (s *socket, up notification, to netip.AddrPort) {
	t.Helper()
	var cfg Config
	cfg.fill()
	to = l.addr.AddrPort
	s, err := open(netip.AddrPortFrom(to.Addr(), 0), false, &cfg, func(int) error { return nil })
	testrig.Must(t, err)
	t.Cleanup(s.close)
	testrig.Must(t, s.do(func(fd int) error { return connect(fd, to, false) }))
	up, err = s.answer(ctx)
	testrig.Must(t, err)
	return s, up, to
}

// peeledOff returns the association's own socket.
func peeledOff(t *testing.T, s *socket, up notification) (own *socket) {
	t.Helper()
	fd := -1
	testrig.Must(t, s.do(func(whole int) (err error) {
		fd, err = peel(whole, up.assoc)
		return err
	}))
	own, err := watch(fd)
	testrig.Must(t, err)
	t.Cleanup(own.close)
	return own
}

// TestEndedEarly: an association that the peer aborts before it is peeled off, or between that and when it is looked
// at, has ended for the peer's reason, and not for what the kernel says of one that it does not know.
func TestEndedEarly(t *testing.T) {
	ctx := testrig.Within(t)
	l, err := Listen("sctp4", "127.0.0.1:0", Config{})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	testrig.Must(t, err)
	defer func() { testrig.Must(t, l.Close()) }()
	for _, peeled := range []bool{false, true} {
		s, up, to := dialed(ctx, t, l)
		c := &Conn{s: s, assoc: up.assoc, done: make(chan struct{})}
		if peeled {
			c.s = peeledOff(t, s, up)
		}
		peer, err := l.Accept(ctx)
		testrig.Must(t, err)
		peer.Abort("because")
		for c.s.do(c.look) == nil { // until our kernel has the ABORT
			testrig.Must(t, ctx.Err())
			time.Sleep(time.Millisecond)
		}
		if peeled {
			err = c.inspect()
		} else {
			_, err = peelOff(s, up, to)
		}
		if !errors.Is(err, lowerlayer.ErrAborted) || !strings.Contains(err.Error(), "because") {
			t.Errorf("peeled off before: %t: %v", peeled, err)
		}
	}
}
