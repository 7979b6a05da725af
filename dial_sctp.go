package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// dialSCTP opens an association, and a session in it.
func (d *Dialer) dialSCTP(ctx context.Context, qp *QP, network, addr string, a attempt) error {
	local, err := d.localUDP()
	if err != nil {
		return err
	}
	counts := tally{&qp.rnic.startup}
	counts.count(func(s *StartupStats) { s.Started++ })
	began := time.Now()
	s, n, err := d.openSession(ctx, qp.rnic, destination{network, addr, local}, a.offer)
	if err != nil {
		if s != nil {
			a.failed(s)
		}
		err = rejected(err, addr)
		counts.failed(err)
		return err
	}
	n = d.Preset.takeDepths(n)
	if err = d.verifySession(s, n); err == nil {
		err = qp.enterRTSOver(s, Negotiated{
			Negotiated: n, RTT: time.Since(began), FellBack: a.after != nil, FallbackReason: a.after, Opener: a.opener,
		}, lease{})
	}
	return counts.settle(s, err)
}

// localUDP returns the address to bind, and refuses what a Dialer has for TCP only. Without Wrap what the consumer wanted
// encrypted would go out in clear.
func (d *Dialer) localUDP() (string, error) {
	if d.Wrap != nil {
		return "", fmt.Errorf("%w: Dialer.Wrap is for TCP connections, and SCTP has none to wrap", ErrInvalid)
	}
	local := ":0"
	switch a := d.Net.LocalAddr.(type) {
	case nil:
	case *net.UDPAddr:
		if a != nil {
			local = a.String()
		}
	case *net.TCPAddr:
		if a != nil {
			local = (*net.UDPAddr)(a).String()
		}
	case *net.IPAddr:
		if a != nil {
			local = (&net.UDPAddr{IP: a.IP, Zone: a.Zone}).String()
		}
	default:
		return "", fmt.Errorf("%w: Dialer.Net.LocalAddr is a %T, and SCTP has a *net.UDPAddr", ErrInvalid, a)
	}
	return local, nil
}

// rejected is the error of a session that the peer's consumer did not want, as that of a connection over TCP.
func rejected(err error, to string) error {
	var r *sctp.Refusal
	if !errors.As(err, &r) || r.Provider {
		return err
	}
	dialect := mpa.DialectRFC5044 // that of the answer, as with MPA
	if r.Enhanced {
		dialect = mpa.DialectRFC6581
	}
	return &RejectError{RejectError: &mpa.RejectError{
		Dialect: dialect, PrivateData: r.PrivateData, Enhanced: r.Enhanced, PeerIRD: r.PeerIRD, PeerORD: r.PeerORD,
	}, Conn: noConn{to: to}}
}

// openSession has the peer accept a session, in an association that lasts as long as it has any: one that is shared, or one of its own.
func (d *Dialer) openSession(ctx context.Context, r *RNIC, to destination, o mpa.Offer) (*association.Session, mpa.Negotiated, error) {
	associations := &r.sharing
	if !d.ShareAssociation {
		associations = new(sharing)
	}
	s, err := associations.begin(ctx, to, o, func(cfg association.Config) (*association.Association, error) {
		c, err := d.openAssociation(ctx, to.network, to.addr, to.local)
		if err != nil {
			return nil, err
		}
		cfg.LastWords = engine.AbortSegment()
		cfg.Machine = sctp.Config{Active: true, AnswerTimeout: max(o.Timeout, 0)}
		return association.New(c, cfg), nil
	})
	if err != nil {
		return nil, mpa.Negotiated{}, err
	}
	n, err := s.Answer(ctx)
	return s, n, err
}

// openAssociation opens an SCTP association on a socket of its own.
func (d *Dialer) openAssociation(ctx context.Context, network, addr, local string) (association.Carrier, error) {
	if byKernel(network) {
		return d.dialKernel(ctx, network, addr, local)
	}
	to, err := d.resolve(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg := net.ListenConfig{Control: d.Net.Control}
	over := "udp6"
	if to.Addr().Is4() {
		over = "udp4"
	}
	pc, err := cfg.ListenPacket(ctx, over, local)
	if err != nil {
		return nil, err
	}
	e := sctpudp.New(pc.(*net.UDPConn), false, sctpudp.Config{})
	c, err := e.Dial(ctx, to)
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	e.Retire()
	return c, nil
}

// resolve returns the first address of a name.
func (d *Dialer) resolve(ctx context.Context, network, addr string) (netip.AddrPort, error) {
	resolver := d.Net.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := resolver.LookupPort(ctx, udp(network), service)
	if err != nil {
		return netip.AddrPort{}, err
	}
	all, err := resolver.LookupNetIP(ctx, "ip"+family(network), host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(all[0].Unmap(), uint16(port)), nil
}

// verifySession has the consumer look at an answer that accepts the session, and that we can accept.
func (d *Dialer) verifySession(s *association.Session, n mpa.Negotiated) error {
	if d.Verify == nil || n.TerminateCode != 0 {
		return nil
	}
	err := unlessPanic(func() { _ = s.Cancel() }, func() error { return d.Verify(n) })
	if err != nil {
		_ = s.Cancel()
		return &VerifyError{Err: err, Conn: noConn{to: s.RemoteAddr().String()}}
	}
	return nil
}

// enterRTSOver starts the QP on a session, or tells the peer why that cannot be.
//
// RFC 6581, section 9.3: other local errors of the establishment are told to the peer with "local catastrophic",
// code 5. [E05] [E10] [E11]
func (qp *QP) enterRTSOver(s *association.Session, n Negotiated, l lease) error {
	if n.TerminateCode != 0 {
		return turnDownOver(s, n.Negotiated)
	}
	qp.rnic.resolve(&n.Negotiated)
	err := qp.startOver(s, n, qp.stream(), l)
	if err != nil {
		n.TerminateCode = mpa.CodeLocalCatastrophic
		_ = turnDownOver(s, n.Negotiated)
	}
	return err
}

// turnDownOver ends a session that cannot be used: the peer learns why by a Terminate of RDMAP, in front of that of
// the session.
func turnDownOver(s *association.Session, n mpa.Negotiated) error {
	segment, why := engine.TurnDownSegment(n)
	_, _ = s.Send([][]byte{segment})
	_ = s.Close()
	err := publicError(why)
	if t := new(TerminateError); n.TerminateCode != mpa.CodeLocalCatastrophic && errors.As(err, &t) {
		return &NegotiationError{TerminateError: t, Negotiated: n}
	}
	return err
}

// acceptSession answers over SCTP, and puts the QP into RTS. An answer that cannot be given leaves the Request as it is.
func (r *Request) acceptSession(qp *QP, answer mpa.Answer) error {
	n, err := r.over.AcceptSession(answer)
	if errors.Is(err, mpa.ErrOffer) {
		return err
	}
	r.answered = true
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConnectionLost, err)
	}
	return qp.enterRTSOver(r.over, Negotiated{Negotiated: r.preset.takeDepths(n)}, r.lease())
}

// rejectSession rejects the peer's request for a session.
func (r *Request) rejectSession(privateData []byte, ird, ord mpa.Depth) error {
	err := r.over.RejectSession(privateData, ird, ord)
	if errors.Is(err, mpa.ErrOffer) {
		return err
	}
	r.answered = true
	r.place.leave()
	if err != nil {
		r.counts.failed(err)
		return err
	}
	r.counts.count(func(s *StartupStats) { s.Rejected++ })
	return nil
}
