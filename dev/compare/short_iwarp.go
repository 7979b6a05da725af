package main

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp"
)

// shortPeers are two ends that have short connections with each other.
type shortPeers struct {
	ctx      context.Context
	ln       *iwarp.Listener
	from, to shortEnd
	wrap     func(net.Conn) (net.Conn, error) // as Dialer.Wrap
}

// openShort listens, and returns what has one connection.
func openShort(ctx context.Context) (run func() error, end func(), err error) {
	s := &shortPeers{ctx: ctx}
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	end = func() { _ = rnic.Close() }
	if s.from, err = newShortEnd(rnic); err == nil {
		s.to, err = newShortEnd(rnic)
	}
	if err == nil {
		s.ln, err = (&iwarp.ListenConfig{PD: s.to.pd}).Listen(ctx, "tcp", loopback+":0")
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	go s.serve()
	return s.run, end, nil
}

// A shortEnd is a PD, and room for a message in it.
type shortEnd struct {
	pd *iwarp.PD
	mr *iwarp.MR
}

func newShortEnd(rnic *iwarp.RNIC) (e shortEnd, err error) {
	if e.pd, err = rnic.AllocPD(); err != nil {
		return e, err
	}
	e.mr, err = e.pd.Register(make([]byte, shortMessage), iwarp.LocalWrite)
	return e, err
}

// prepare posts the receive of a new QP.
func (e shortEnd) prepare(qp *iwarp.QP) error {
	return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{e.message()}})
}

func (e shortEnd) message() iwarp.SGE { return e.mr.Slice(0, shortMessage) }

func (s *shortPeers) serve() {
	for {
		req, err := s.ln.Accept(s.ctx)
		if err != nil {
			return
		}
		go func() {
			qp, err := req.Accept(s.ctx, iwarp.AcceptConfig{Prepare: s.to.prepare})
			if err != nil {
				return
			}
			if err := nextMessage(s.ctx, qp); err == nil {
				_ = qp.Send(s.ctx, s.to.message())
			}
			_ = qp.Close()
		}()
	}
}

func (s *shortPeers) run() error {
	d := iwarp.Dialer{PD: s.from.pd, Prepare: s.from.prepare, Wrap: s.wrap}
	qp, err := d.Dial(s.ctx, "tcp", s.ln.Addr().String())
	if err != nil {
		return err
	}
	if err := qp.Send(s.ctx, s.from.message()); err != nil {
		return err
	}
	if err := nextMessage(s.ctx, qp); err != nil {
		return err
	}
	return qp.Close()
}
