package perf

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/mpa"
)

// A Visit is one initiator's measurement as its responder reports it.
type Visit struct {
	Remote  net.Addr
	Options Options
	Err     error // nil if the initiator was served to the end; an *InterruptedError if one of the ends was interrupted
}

// Listen listens for initiators on one of the networks that Options has, of any startup dialect.
func Listen(ctx context.Context, network, addr string) (*Listener, error) {
	return ListenTapped(ctx, network, addr, Tap{})
}

// ListenTapped is Listen with a Tap. Connections of the operating system's TCP are recorded by NewListener.
func ListenTapped(ctx context.Context, network, addr string, tap Tap) (*Listener, error) {
	over, err := open(network)
	if err != nil {
		return nil, err
	}
	over.Tap(tap)
	ln, err := listen(ctx, over, addr)
	if err != nil {
		return nil, errors.Join(err, over.Close())
	}
	ln.over = over
	return ln, nil
}

// NewListener is Listen on ln, which may encrypt or record what passes. The connections of plain
// TCP come by it, too, and run on what their method NetConn tells of, if they have one, as soon as the responder has
// taken them.
func NewListener(ln net.Listener) *Listener { return newListener(ln) }

// Serve is the responder of measurements until the context ends; it then
// returns nil, having told the initiator that is served then. One initiator is served at a time, so that measurements
// do not disturb each other; others are told to try again. An initiator that asks for
// nothing keeps nobody out, and one whose measurement stands still for half a minute
// is given up. Each that has gone is reported to ended, which may be nil and is called
// by one goroutine at a time.
func Serve(ctx context.Context, ln *Listener, ended func(Visit)) error {
	return serve(ctx, ln, ended, idleLimit)
}

// ServeOwner is Serve for a responder whose initiator has started it, and ends the context: see [RunTwo]. What stands
// still is not given up, as it does while the initiator measures against another responder, and reports what goes wrong
// itself.
func ServeOwner(ctx context.Context, ln *Listener) error {
	return serve(ctx, ln, nil, 0)
}

func serve(ctx context.Context, ln *Listener, ended func(Visit), idle time.Duration) error {
	r := newReception(ln.RNIC(), ended, idle)
	r.ln = ln
	return r.serve(ctx)
}

// A Responder is that of measurements whose connections come by a Listener which has other connections too.
type Responder struct{ reception *reception }

// NewResponder makes one that takes what it needs of an RNIC: up to so many bytes of buffers, and never more than
// MaxMemory. An initiator that needs more is told so.
func NewResponder(rnic *iwarp.RNIC, memory int64) *Responder {
	r := newReception(rnic, nil, idleLimit)
	r.memory = min(memory, MaxMemory)
	return &Responder{r}
}

// Knows reports whether a request is one of an initiator's.
func (*Responder) Knows(req *iwarp.Request) bool {
	_, err := helloOf(req)
	return !errors.Is(err, errNotPerf)
}

// Serve serves one request, and returns when its connection has ended. There is the same order among them as [Serve]
// keeps. The error is that of a measurement which was not served to its end, or of a request that was rejected.
func (r *Responder) Serve(ctx context.Context, req *iwarp.Request) error {
	return r.reception.receive(ctx, req)
}

// A visit is the responder's end of one measurement.
type visit struct {
	reception *reception
	id        uint64
	slot      *admission.Slot // until it measures
	stops     <-chan struct{} // closed when the responder is interrupted
	lanes     chan arrival    // connections to join it
	done      chan struct{}
	cancel    context.CancelCauseFunc
}

// An arrival is a connection request and what it says of itself.
type arrival struct {
	req *iwarp.Request
	hello
	taken chan struct{} // closed when it is one of plain TCP, which is the visit's from then on
}

// deliver hands a connection request over, and returns when the visit is over, or has made plain TCP of it. There are
// never more than fit, unless the initiator does not keep to what it asked for. Without one of its connections a visit
// is over.
func (v *visit) deliver(ctx context.Context, req *iwarp.Request, h hello) error {
	in := arrival{req, h, make(chan struct{})}
	select {
	case v.lanes <- in:
		defer context.AfterFunc(ctx, func() { v.cancel(context.Cause(ctx)) })()
		select {
		case <-in.taken:
		case <-v.done:
		}
		_ = req.Close() // if it was not looked at
		return nil
	default:
		return v.reception.decline(req, errors.New("perf: more connections than announced"))
	}
}

func (v *visit) serve(ctx context.Context, req *iwarp.Request) error {
	report := Visit{Remote: req.RemoteAddr()}
	s, err := newSession(responder, v.reception.rnic)
	if err != nil {
		err = v.reception.reject(req, orFull(err))
	} else {
		a := &respondent{visit: v, session: s}
		err = v.orStopped(s, a.run(ctx, req))
		report.Options = s.opts
		s.close(err == nil)
		s.release()
		_ = req.Close() // if it could not be accepted
	}
	report.Err = err
	v.reception.leave(v, report)
	return err
}

// orStopped is the interrupt of the responder, of which the initiator is told, if that is what a visit has failed with.
func (v *visit) orStopped(s *session, err error) error {
	select {
	case <-v.stops:
	default:
		return err
	}
	if err == nil || errors.As(err, new(*CorruptionError)) || errors.As(err, new(*InterruptedError)) {
		return err
	}
	s.leave()
	return &InterruptedError{responder.String()}
}

// acceptControl brings the control connection up.
func (s *session) acceptControl(ctx context.Context, req *iwarp.Request) error {
	_, err := req.Accept(ctx, iwarp.AcceptConfig{PD: s.pd, QP: s.ctl.config(),
		MPA: mpa.Answer{}, Prepare: s.ctl.prepare})
	if err != nil {
		s.ctl.qp = nil
	}
	return err
}
