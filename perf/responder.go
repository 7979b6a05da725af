package perf

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// A Visit is one initiator's measurement as its responder reports it.
type Visit struct {
	Remote  net.Addr
	Options Options
	Err     error // nil if the initiator was served to the end
}

// Listen listens for initiators, of any startup dialect.
func Listen(ctx context.Context, addr string) (*iwarp.Listener, error) {
	return iwarp.Listen(ctx, "tcp", addr, listenConfig())
}

// NewListener is Listen on ln, which may record what passes. The connections of plain
// TCP do not come by it.
func NewListener(ln net.Listener) *iwarp.Listener { return iwarp.NewListener(ln, listenConfig()) }

func listenConfig() iwarp.ListenConfig {
	return iwarp.ListenConfig{Dialects: mpa.Dialects(), Messages: true}
}

// Serve is the responder of measurements until the context ends; it then
// returns nil. One initiator is served at a time, so that measurements do not
// disturb each other; others are rejected. Each that has gone is reported to
// ended, which may be nil.
func Serve(ctx context.Context, ln *iwarp.Listener, ended func(Visit)) error {
	if ended == nil {
		ended = func(Visit) {}
	}
	r := &reception{ended: ended}
	defer func() { <-r.current.gone() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		req, err := ln.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		r.receive(ctx, req)
	}
}

// A reception tells connection requests apart.
type reception struct {
	current *visit // nil, or the last one
	ended   func(Visit)
}

func (r *reception) receive(ctx context.Context, req *iwarp.Request) {
	h, err := helloOf(req)
	switch {
	case err != nil:
		reject(req, err.Error())
	case h.control && r.current.busy():
		reject(req, "perf: another measurement is under way; try again later")
	case h.control:
		r.current = newVisit(h.session, r.ended)
		go r.current.serve(ctx, req)
	case !r.current.busy() || h.session != r.current.id:
		reject(req, "perf: no such measurement")
	default:
		r.current.deliver(req, h)
	}
}

// reject answers with a reason that the initiator's error message shows.
func reject(req *iwarp.Request, reason string) {
	if conn, err := req.Reject([]byte(reason)); err == nil {
		conn.Close()
	}
}

// A visit is the responder's end of one measurement.
type visit struct {
	id    uint64
	lanes chan arrival // connections to join it
	done  chan struct{}
	ended func(Visit)
}

// An arrival is a connection request and what it says of itself.
type arrival struct {
	req *iwarp.Request
	hello
}

func newVisit(id uint64, ended func(Visit)) *visit {
	return &visit{id: id, lanes: make(chan arrival, MaxQPs), done: make(chan struct{}), ended: ended}
}

// gone returns a channel that is closed when the visit, if any, is over.
func (v *visit) gone() <-chan struct{} {
	if v != nil {
		return v.done
	}
	none := make(chan struct{})
	close(none)
	return none
}

func (v *visit) busy() bool {
	select {
	case <-v.gone():
		return false
	default:
		return true
	}
}

// deliver hands a connection request over. There are never more than fit,
// unless the initiator does not keep to what it asked for.
func (v *visit) deliver(req *iwarp.Request, h hello) {
	select {
	case v.lanes <- arrival{req, h}:
	default:
		reject(req, "perf: more connections than announced")
	}
}

func (v *visit) serve(ctx context.Context, req *iwarp.Request) {
	defer close(v.done)
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	report := Visit{Remote: req.RemoteAddr()}
	s, err := newSession(responder, rnic)
	if err != nil {
		reject(req, err.Error())
	} else {
		a := &attendance{visit: v, session: s}
		err = a.run(ctx, req)
		report.Options = s.opts
		s.close(err == nil)
	}
	report.Err = err
	v.ended(report)
}

// acceptControl brings the control connection up.
func (s *session) acceptControl(ctx context.Context, req *iwarp.Request) error {
	_, err := req.Accept(ctx, iwarp.AcceptConfig{PD: s.pd, QP: s.ctl.config(), MPA: mpa.Offer{}, Prepare: s.ctl.prepare})
	if err != nil {
		s.ctl.qp = nil
	}
	return err
}
