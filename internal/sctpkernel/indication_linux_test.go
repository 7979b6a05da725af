package sctpkernel_test

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/sctpkernel"
	"github.com/goiwarp/iwarp/sctp"
)

// indicating has a socket send another Adaptation Layer Indication; 0 is none.
func indicating(n int) sctpkernel.Config {
	const adaptationLayer = 7
	return sctpkernel.Config{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_SCTP, adaptationLayer, n)
		}), err)
	}}
}

// TestNoIndication: a peer without DDP's indication, of either role, is aborted, and nobody hears of it.
//
// RFC 5043, section 7.1: it "SHOULD terminate all requests to establish an association with any different
// Adaptation Indication."
//
// Proves C05.
func TestNoIndication(t *testing.T) {
	for _, n := range []int{0, 7} {
		ln := listen(t, sctpkernel.Config{})
		c, err := dial(within(t), ln, indicating(n))
		must(t, err)
		s := newSide(t, c)
		good, err := dial(within(t), ln, sctpkernel.Config{})
		must(t, err)
		d, err := ln.Accept(within(t))
		must(t, err)
		if d.RemoteAddr().String() != good.LocalAddr().String() {
			t.Errorf("%d: %v was accepted", n, d.RemoteAddr())
		}
		if err := next(t, s.lost); !errors.Is(err, lowerlayer.ErrAborted) {
			t.Errorf("%d: the peer: %v", n, err)
		}

		other := listen(t, indicating(n))
		_, err = dial(within(t), other, sctpkernel.Config{})
		var v *sctp.Violation
		if !errors.As(err, &v) || v.Rule != sctp.RuleIndication {
			t.Errorf("%d: dialed: %v", n, err)
		}
	}
}
