package iwarpsctp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/sctpkernel"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// Dial implements [iwarp.SegmentNetwork]: it has the peer accept a session, in an association that is shared, or in
// one of its own.
func (n *Network) Dial(
	ctx context.Context, network, address string, from *net.Dialer, o mpa.Offer,
) (iwarp.SegmentSession, mpa.Negotiated, error) {
	local, err := localAddress(from.LocalAddr)
	if err = cmp.Or(sctp.CheckOffer(o), err, n.check(network)); err != nil {
		return nil, mpa.Negotiated{}, err
	}
	d := dialing{n: n, to: destination{network, address, local}, from: from, offer: o}
	s, agreed, err := d.session(ctx)
	if s == nil { // and no session in the interface
		return nil, agreed, err
	}
	return s, agreed, refused(err)
}

// localAddress returns the address to bind.
func localAddress(a net.Addr) (string, error) {
	local := ":0"
	switch a := a.(type) {
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
		return "", fmt.Errorf("%w: Dialer.Net.LocalAddr is a %T, and SCTP has a *net.UDPAddr", iwarp.ErrInvalid, a)
	}
	return local, nil
}

// refused is a Refusal as package iwarp takes it: as a rejection, or as advice to ask again.
func refused(err error) error {
	r, ok := errors.AsType[*sctp.Refusal](err)
	switch {
	case !ok:
		return err
	case r.Fallback:
		return unknowing{r}
	case r.Provider:
		return err
	}
	return &mpa.RejectError{
		Dialect: r.Dialect, PrivateData: r.PrivateData, Enhanced: r.Enhanced, PeerIRD: r.PeerIRD, PeerORD: r.PeerORD,
	}
}

// An unknowing peer seems not to know RFC 6581.
type unknowing struct{ *sctp.Refusal }

// Fallback says what the peer did, and with what it is asked again.
func (unknowing) Fallback() (refused, plain string) {
	return "answered an Enhanced Initiate with a Terminate", "an unenhanced Initiate"
}

// Unwrap returns the Refusal.
func (u unknowing) Unwrap() error { return u.Refusal }

// dialing is what one Dial wants.
type dialing struct {
	n     *Network
	to    destination
	from  *net.Dialer
	offer mpa.Offer
}

// session has the peer accept a session, in an association that lasts as long as it has any: one that is shared, or
// one of its own. A shared one may be aborted meanwhile, as the peer gives up what it takes for its only session:
// then another serves.
func (d *dialing) session(ctx context.Context) (*association.Session, mpa.Negotiated, error) {
	associations := &d.n.shared
	if !d.n.ShareAssociations {
		associations = new(sharing)
	}
	for {
		s, agreed, opened, err := d.ask(ctx, associations)
		if opened || !errors.Is(err, lowerlayer.ErrAborted) {
			return s, agreed, err
		}
	}
}

// ask asks for a session. opened tells that this has opened an association.
func (d *dialing) ask(
	ctx context.Context, in *sharing,
) (s *association.Session, agreed mpa.Negotiated, opened bool, err error) {
	s, err = in.openSession(ctx, d.to, d.offer, func(cfg association.Config) (*association.Association, error) {
		opened = true
		c, err := d.open(ctx)
		if err != nil {
			return nil, err
		}
		cfg.LastWords, cfg.Counted = engine.AbortSegment(), d.n.count
		cfg.Machine = sctp.Config{Active: true, AnswerTimeout: max(d.offer.Timeout, 0)}
		return association.New(c, cfg), nil
	})
	if err == nil {
		agreed, err = s.Answer(ctx)
	}
	return s, agreed, opened, err
}

// open opens an SCTP association on a socket of its own.
func (d *dialing) open(ctx context.Context) (association.Carrier, error) {
	to, err := d.resolve(ctx)
	if err != nil {
		return nil, err
	}
	if byKernel(d.to.network) {
		return d.openByKernel(ctx, to)
	}
	cfg := net.ListenConfig{Control: d.from.Control}
	over := "udp6"
	if to.Addr().Is4() {
		over = "udp4"
	}
	pc, err := cfg.ListenPacket(ctx, over, d.to.local)
	if err != nil {
		return nil, err
	}
	socket, err := d.n.wrap(pc)
	if err != nil {
		return nil, err
	}
	e := sctpudp.New(socket, false, sctpudp.Config{MTU: d.n.MTU})
	c, err := e.Dial(ctx, to)
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	e.Retire()
	return c, nil
}

// openByKernel opens an association by the kernel's SCTP.
func (d *dialing) openByKernel(ctx context.Context, to netip.AddrPort) (association.Carrier, error) {
	from, err := net.ResolveUDPAddr(udp(d.to.network), d.to.local)
	if err != nil {
		return nil, err
	}
	at := from.AddrPort()
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	return carrierOf(sctpkernel.Dial(ctx, at, to, sctpkernel.Config{Control: d.from.Control}))
}

// resolve returns the first address of a name.
func (d *dialing) resolve(ctx context.Context) (netip.AddrPort, error) {
	resolver := cmp.Or(d.from.Resolver, net.DefaultResolver)
	host, service, err := net.SplitHostPort(d.to.address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := resolver.LookupPort(ctx, udp(d.to.network), service)
	if err != nil {
		return netip.AddrPort{}, err
	}
	all, err := resolver.LookupNetIP(ctx, "ip"+family(d.to.network), host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(all[0].Unmap(), uint16(port)), nil
}

// carrierOf keeps a nil that has a type from being taken for a Carrier.
func carrierOf[C association.Carrier](c C, err error) (association.Carrier, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}
