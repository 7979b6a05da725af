package iwarpsctp

import (
	"context"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/sctpkernel"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/sctp"
)

// maxAssociations bounds those of one Listener: each may have several sessions, whose QPs have bounds of their own.
const maxAssociations = 1 << 14

// maxPending bounds the requests of one association that wait for an answer: as many as its peer has streams to ask
// on. The bounds of the [iwarp.Listener] are for all.
const maxPending = 32

// Listen implements [iwarp.SegmentNetwork], on a socket of the carrier that the network names.
func (n *Network) Listen(
	ctx context.Context, network, address string, with *net.ListenConfig, unused time.Duration,
) (iwarp.SegmentListener, error) {
	if err := n.check(network); err != nil {
		return nil, err
	}
	on, err := n.socket(ctx, network, address, with)
	if err != nil {
		return nil, err
	}
	return &listener{on, association.Config{
		Machine:   sctp.Config{Listening: true, MaxPending: maxPending, UnusedTimeout: unused},
		LastWords: engine.AbortSegment(),
		Counted:   n.count,
	}}, nil
}

func (n *Network) socket(ctx context.Context, network, address string, with *net.ListenConfig) (associations, error) {
	if byKernel(network) {
		cfg := sctpkernel.Config{MaxAssociations: maxAssociations, Control: with.Control}
		l, err := sctpkernel.Listen("sctp"+family(network), address, cfg)
		return kernelSocket{l}, err
	}
	pc, err := with.ListenPacket(ctx, udp(network), address)
	if err != nil {
		return nil, err
	}
	socket, err := n.wrap(pc)
	if err != nil {
		return nil, err
	}
	return udpSocket{sctpudp.New(socket, true, sctpudp.Config{MaxAssociations: maxAssociations, MTU: n.MTU})}, nil
}

// associations are those that peers open.
type associations interface {
	// next waits for one.
	next(context.Context) (association.Carrier, error)
	Addr() net.Addr
	Close() error
}

// kernelSocket and udpSocket are sockets with associations, as a listener closes them: those that there are go on.
type (
	kernelSocket struct{ *sctpkernel.Listener }
	udpSocket    struct{ *sctpudp.Endpoint }
)

func (l kernelSocket) next(ctx context.Context) (association.Carrier, error) {
	return carrierOf(l.Listener.Accept(ctx))
}

func (l udpSocket) next(ctx context.Context) (association.Carrier, error) {
	return carrierOf(l.Endpoint.Accept(ctx))
}

// Close takes no more associations.
func (l udpSocket) Close() error { l.Retire(); return nil }

// A listener takes what peers open.
type listener struct {
	associations
	cfg association.Config
}

// Accept implements [iwarp.SegmentListener].
func (l *listener) Accept(ctx context.Context) (iwarp.SegmentPeer, error) {
	c, err := l.next(ctx)
	if err != nil {
		return nil, err
	}
	return peer{association.New(c, l.cfg)}, nil
}

// A peer asks for sessions in its association.
type peer struct{ *association.Association }

// Accept implements [iwarp.SegmentPeer]. When it fails, sessions that share the association go on.
func (p peer) Accept(ctx context.Context) (iwarp.SegmentRequest, error) {
	s, err := p.Association.Accept(ctx)
	if err == nil {
		return s, nil
	}
	p.StopListening()
	if ctx.Err() != nil && !p.Used() {
		p.Close("not listening any more")
	}
	return nil, err
}

// Abort implements [iwarp.SegmentPeer].
func (p peer) Abort(why string) { p.Close(why) }
