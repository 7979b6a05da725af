package iwarp

import (
	"cmp"
	"context"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/sctpkernel"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// maxAssociations bounds those of one Listener: each may have several sessions, whose QPs have bounds of their own.
const maxAssociations = 1 << 14

// maxPending bounds the requests of one association that wait for an answer: as many as its peer has streams to ask on. The
// Listener's own bounds are for all.
const maxPending = 32

// listenSCTP listens on a socket of the carrier that the network names.
func (cfg *ListenConfig) listenSCTP(ctx context.Context, network, addr string) (*Listener, error) {
	if err := cmp.Or(cfg.consistent(), checkUDP(network, cfg.MTU, cfg.WrapUDP != nil)); err != nil {
		return nil, err
	}
	if cfg.Stack != nil {
		return nil, noStack("ListenConfig")
	}
	ln, err := cfg.openSCTP(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l := newListener(ln, *cfg)
	l.begin(nil, func() { l.acceptAssociations(ln) })
	return l, nil
}

func (cfg *ListenConfig) openSCTP(ctx context.Context, network, addr string) (associations, error) {
	if byKernel(network) {
		l, err := sctpkernel.Listen("sctp"+family(network), addr, sctpkernel.Config{MaxAssociations: maxAssociations, Control: cfg.Net.Control})
		return kernelListener{l}, err
	}
	pc, err := cfg.Net.ListenPacket(ctx, udp(network), addr)
	if err != nil {
		return nil, err
	}
	socket, err := wrapUDP("ListenConfig", cfg.WrapUDP, pc)
	if err != nil {
		return nil, err
	}
	return udpListener{sctpudp.New(socket, true, sctpudp.Config{MaxAssociations: maxAssociations, MTU: cfg.MTU})}, nil
}

// Close takes no more associations.
func (l udpListener) Close() error { l.Retire(); return nil }

// acceptAssociations takes what peers open.
func (l *Listener) acceptAssociations(ln associations) {
	for {
		c, err := ln.next(l.ctx)
		if err != nil {
			l.stop(err)
			return
		}
		l.tasks.Go(func() { l.serve(c) })
	}
}

// An opened association has a place until there is a request.
type opened struct{ *association.Association }

// Close aborts it.
func (o opened) Close() error {
	go o.Association.Close("closed to make room")
	return nil
}

// serve offers the requests of one association to Accept. Until there is one the association is half-open.
func (l *Listener) serve(c association.Carrier) {
	timeout := cmp.Or(l.cfg.RequestTimeout, mpa.DefaultRequestTimeout)
	a := association.New(c, association.Config{
		Machine:   sctp.Config{Listening: true, MaxPending: maxPending, UnusedTimeout: max(timeout, -1)},
		LastWords: engine.AbortSegment(),
		Counted:   l.rnic.sctp.count,
	})
	p := l.places.enter(opened{a})
	if p == nil {
		l.evicted(opened{a})
		a.Close("no room")
		return
	}
	for {
		s, err := a.Accept(l.ctx)
		p.leave()
		if err != nil {
			a.StopListening() // sessions that share the association go on
			if l.ctx.Err() != nil && !a.Used() {
				a.Close("not listening any more")
			}
			return
		}
		l.request(s)
	}
}

// request offers one request to Accept, if there is room for it.
func (l *Listener) request(s *association.Session) {
	p := l.places.enter(s)
	if p == nil {
		l.evicted(s)
		_ = s.Cancel()
		return
	}
	req := &Request{ln: l, place: p, rnic: l.rnic, named: l.cfg.named(), pd: l.cfg.PD, over: s, counts: l.tally(), preset: l.cfg.Preset}
	req.counts.count(func(s *StartupStats) { s.Started++ })
	l.tasks.Go(func() {
		if !p.arrived(func() {}) || !l.offer(req) { // it was closed to make room
			_ = s.Cancel()
			p.leave()
		}
	})
}
