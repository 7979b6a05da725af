package iwarp

import (
	"cmp"
	"context"
	"errors"
	"net"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// maxAssociations bounds those of one Listener: each may have several sessions, whose QPs have bounds of their own.
const maxAssociations = 1 << 14

// listenSCTP listens on a UDP socket.
func (cfg *ListenConfig) listenSCTP(ctx context.Context, network, addr string) (*Listener, error) {
	if err := cfg.consistent(); err != nil {
		return nil, err
	}
	pc, err := cfg.Net.ListenPacket(ctx, udp(network), addr)
	if err != nil {
		return nil, err
	}
	e := sctpudp.New(pc.(*net.UDPConn), true, sctpudp.Config{MaxAssociations: maxAssociations})
	l := newListener(sctpListener{e}, *cfg)
	l.tasks.Go(func() { l.acceptAssociations(e) })
	return l, nil
}

// A sctpListener is a socket with associations, as a Listener closes it: those that there are go on.
type sctpListener struct{ *sctpudp.Endpoint }

// Accept is not used.
func (sctpListener) Accept() (net.Conn, error) { return nil, errors.ErrUnsupported }

// Close takes no more associations.
func (l sctpListener) Close() error { l.Retire(); return nil }

// acceptAssociations takes what peers open.
func (l *Listener) acceptAssociations(e *sctpudp.Endpoint) {
	for {
		c, err := e.Accept(l.ctx)
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
func (l *Listener) serve(c *sctpudp.Conn) {
	timeout := cmp.Or(l.cfg.RequestTimeout, mpa.DefaultRequestTimeout)
	a := association.New(c, association.Config{Machine: sctp.Config{Listening: true, UnusedTimeout: max(timeout, -1)}})
	p := l.places.enter(opened{a})
	if p == nil {
		l.evicted()
		a.Close("no room")
		return
	}
	for {
		s, err := a.Accept(l.ctx)
		p.leave()
		if err != nil {
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
		l.evicted()
		_ = s.Reset()
		return
	}
	req := &Request{ln: l, place: p, rnic: l.rnic, pd: l.cfg.PD, over: s, counts: l.tally(), preset: l.cfg.Preset}
	req.counts.count(func(s *StartupStats) { s.Started++ })
	if !p.arrived(func() {}) {
		return
	}
	l.tasks.Go(func() {
		if !l.offer(req) {
			_ = s.Reset()
			p.leave()
		}
	})
}
