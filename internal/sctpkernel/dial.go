package sctpkernel

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// Dial opens an association with the peer at an address and SCTP port. It is from one address of ours, that of local or
// the one that the system sends to the peer from.
//
// RFC 5043, section 7.2: "The default binding of a DDP-enabled SCTP endpoint SHOULD NOT cover more than a single IP
// address".
func Dial(ctx context.Context, local, to netip.AddrPort, cfg Config) (*Conn, error) {
	cfg.fill()
	ctx, cancel := lowerlayer.Limit(ctx, cfg.HandshakeTimeout)
	defer cancel()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if !local.Addr().IsValid() || local.Addr().IsUnspecified() {
		from, err := lowerlayer.Route(to)
		if err != nil {
			return nil, err
		}
		local = netip.AddrPortFrom(from, local.Port())
	}
	s, err := open(local, to.Addr().Is6(), &cfg, func(int) error { return nil })
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.do(func(fd int) error { return connect(fd, to, to.Addr().Is6()) }); err != nil {
		return nil, err
	}
	up, err := s.answer(ctx)
	if err != nil {
		return nil, err
	}
	return peelOff(s, up, to)
}

// answer waits for what comes of a connect.
func (s *socket) answer(ctx context.Context) (up notification, err error) {
	stop := context.AfterFunc(ctx, s.interrupt)
	defer stop()
	for {
		m, err := s.recv()
		if ctx.Err() != nil {
			return up, lowerlayer.Unanswered(ctx)
		}
		if err != nil {
			return up, err
		}
		n := m.notification()
		cause := refused(n)
		m.release()
		switch {
		case n.is(commUp):
			return n, nil
		case n.is(cannotStart), n.is(commLost):
			return up, cause
		}
	}
}

// refused is why an association has not come up.
func refused(n notification) error {
	if n.cause == 0 && len(n.info) == 0 {
		return lowerlayer.ErrRefused
	}
	return fmt.Errorf("%w: %w", lowerlayer.ErrRefused, aborted(n.cause, n.info))
}

// interrupt ends a recv that waits, and those that follow.
func (s *socket) interrupt() { _ = s.f.SetReadDeadline(time.Unix(1, 0)) }
