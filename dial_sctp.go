package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// dialSCTP opens an association, and a session in it.
func (d *Dialer) dialSCTP(ctx context.Context, qp *QP, network, addr string, a attempt) error {
	if err := d.checkSCTP(a.offer); err != nil {
		return err
	}
	local, err := d.localUDP()
	if err == nil {
		err = checkUDP(network, d.MTU, d.WrapUDP != nil)
	}
	if err != nil {
		return err
	}
	var s *association.Session
	err = a.bringUp(qp, func() (initiated, mpa.Negotiated, error) {
		var n mpa.Negotiated
		s, n, err = d.openSession(ctx, qp.rnic, destination{network, addr, local, d.MTU}, a.offer)
		if s == nil {
			return nil, n, err
		}
		if err == nil {
			n = d.Preset.takeDepths(n)
			err = d.verifySession(s, n)
		}
		return session{s}, n, rejected(err, addr)
	})
	if err != nil && s != nil {
		part(ctx, s)
	}
	return err
}

// partingTime bounds how long a Dial that has failed waits for the peer to know that.
const partingTime = time.Second

// part waits until the peer knows that a session has ended: the program may end with the Dial, and SCTP in user space with it.
func part(ctx context.Context, s *association.Session) {
	ctx, cancel := context.WithTimeout(ctx, partingTime)
	defer cancel()
	select {
	case <-s.Told():
	case <-ctx.Done():
	}
}

// checkSCTP refuses what a Dialer has for MPA and TCP only, before there is an association. Without Wrap what the consumer
// wanted encrypted would go out in clear. Whether the RNIC has markers and CRCs over MPA does not matter here: they may
// be defaults of an RNIC.
func (d *Dialer) checkSCTP(offer mpa.Offer) error {
	if d.Wrap != nil {
		return fmt.Errorf("%w: Dialer.Wrap is for TCP connections, and SCTP has none to wrap", ErrInvalid)
	}
	if d.Stack != nil {
		return noStack("Dialer")
	}
	offer.Markers, offer.NoCRC = d.MPA.Markers, d.MPA.NoCRC
	return badOffer("Dialer.MPA", sctp.CheckOffer(offer))
}

// localUDP returns the address to bind.
func (d *Dialer) localUDP() (string, error) {
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
	return &RejectError{RejectError: &mpa.RejectError{
		Dialect: r.Dialect, PrivateData: r.PrivateData, Enhanced: r.Enhanced, PeerIRD: r.PeerIRD, PeerORD: r.PeerORD,
	}, Conn: noConn{to: to}}
}

// openSession has the peer accept a session, in an association that lasts as long as it has any: one that is shared, or
// one of its own. A shared one may be aborted meanwhile, as the peer gives up what it takes for its only session: then
// another serves.
func (d *Dialer) openSession(ctx context.Context, r *RNIC, to destination, o mpa.Offer) (*association.Session, mpa.Negotiated, error) {
	associations := &r.sharing
	if !d.ShareAssociation {
		associations = new(sharing)
	}
	for {
		s, n, opened, err := d.askForSession(ctx, r, associations, to, o)
		if opened || !errors.Is(err, carrier.ErrAborted) {
			return s, n, err
		}
	}
}

// askForSession asks for a session. opened tells that this has opened an association.
func (d *Dialer) askForSession(ctx context.Context, r *RNIC, associations *sharing, to destination, o mpa.Offer) (s *association.Session, n mpa.Negotiated, opened bool, err error) {
	s, err = associations.begin(ctx, to, o, func(cfg association.Config) (*association.Association, error) {
		opened = true
		c, err := d.openAssociation(ctx, to.network, to.addr, to.local)
		if err != nil {
			return nil, err
		}
		cfg.LastWords, cfg.Counted = engine.AbortSegment(), r.sctp.count
		cfg.Machine = sctp.Config{Active: true, AnswerTimeout: max(o.Timeout, 0)}
		return association.New(c, cfg), nil
	})
	if err == nil {
		n, err = s.Answer(ctx)
	}
	return s, n, opened, err
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
	socket, err := wrapUDP("Dialer", d.WrapUDP, pc)
	if err != nil {
		return nil, err
	}
	e := sctpudp.New(socket, false, sctpudp.Config{MTU: d.MTU})
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

// A session goes to RTS over SCTP.
type session struct{ *association.Session }

var (
	_ SegmentStream = session{}
	_ SegmentHolder = session{}
)

func (s session) start(qp *QP, n *Negotiated, l lease) error {
	return qp.startOver(s, n, qp.stream(), l)
}

// Recv and Bounds are those of a SegmentStream.
func (s session) Recv() (SegmentArrival, error) {
	a, err := s.Session.Recv()
	return SegmentArrival(a), err
}

func (s session) Bounds() SegmentBounds { return SegmentBounds(s.Session.Bounds()) }

// turnDown ends the session by a Terminate of RDMAP, in front of that of the session.
func (s session) turnDown(n *mpa.Negotiated) *engine.Failure {
	segment, why := engine.TurnDownSegment(*n)
	_, _ = s.Send([][]byte{segment})
	_ = s.Close()
	return why
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
	return qp.enterRTS(session{r.over}, &Negotiated{Negotiated: r.preset.takeDepths(n)}, r.lease())
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
