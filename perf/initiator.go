package perf

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
)

// dialTimeout is how long a connection may take to come up.
const dialTimeout = 10 * time.Second

// An Observer is told how a measurement goes. Functions that are nil are not
// called; none is called while something is timed.
type Observer struct {
	Connected func(Negotiated)
	Progress  func(Progress)
	// Bandwidth gets each result as soon as its bandwidth is known: its latency is not measured yet.
	Bandwidth func(Result)
	Result    func(Result)
	// Wrap gets every TCP connection that the initiator opens for a QP, before the
	// startup, and returns what to use in its place: see iwarp.Dialer. The connections
	// of plain TCP are left alone, and over SCTP there are none.
	Wrap func(net.Conn) (net.Conn, error)
	// WrapPlain, if the responder's Listener encrypts, gets each connection of plain TCP that comes to it, and returns
	// one to ask there for what follows, which goes over the TCP connection itself.
	WrapPlain func(net.Conn) (net.Conn, error)
	// Tap gets what connections over other networks than the operating system's TCP run on, at the initiator's end.
	Tap Tap
}

// Connect measures what the options ask for against the responder at addr,
// host:port. It gives up one on whose connections nothing moves for half a minute. It fails with an
// [InterruptedError] if the responder is interrupted, with a [GoneError] if that has gone without a word,
// and tells the responder if its own context ends.
func Connect(ctx context.Context, addr string, opts Options, watch Observer) (*Report, error) {
	opts, over, err := begun(opts)
	if err != nil {
		return nil, err
	}
	defer over.Close()
	over.Tap(watch.Tap)
	s, err := connect(ctx, over, addr, opts, watch)
	if err != nil {
		return nil, err
	}
	s.apart = true
	return s.measure(ctx, s, opts, watch)
}

// connect brings up the initiator's end of a measurement.
func connect(ctx context.Context, over *network.Network, addr string, opts Options, watch Observer) (*session, error) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Kind: opts.Kind})
	s, err := newSession(initiator, rnic)
	if err != nil {
		rnic.Close()
		return nil, err
	}
	d := &dialing{session: s, over: over, addr: addr, id: newSessionID(), wrap: watch.Wrap, secure: watch.WrapPlain}
	if err = d.connectControl(ctx, opts); err == nil {
		err = d.open(ctx, opts)
	}
	if err != nil {
		if ctx.Err() != nil {
			s.leave()
		}
		s.close(false)
		rnic.Close()
		return nil, cause(ctx, err)
	}
	return s, nil
}

// cause is why the context has ended, if it has: what that did to the connections is of no
// interest.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// measure does all that the options ask for, bandwidth on this session.
func (s *session) measure(ctx context.Context, latency *session, opts Options, watch Observer) (*Report, error) {
	m := &measurement{bandwidth: s, latency: latency, opts: opts, watch: watch}
	within, cancel := whileMoving(ctx, m.sessions()...)
	defer cancel()
	err := orStill(within, m.orEnd(m.run(within)))
	for _, each := range m.sessions() {
		if err != nil {
			each.giveUp(ctx)
		}
		each.close(err == nil)
		each.rnic.Close()
	}
	if err != nil {
		return nil, cause(ctx, err)
	}
	return &m.report, nil
}

// giveUp ends a session that has failed, or that an interrupt has ended.
func (s *session) giveUp(ctx context.Context) {
	if ctx.Err() != nil {
		s.leave()
	}
	s.ctl.qp.Abort() // an orderly end says that we are served
}

func newSessionID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// dialing brings the initiator's connections up.
type dialing struct {
	*session
	over   *network.Network
	addr   string
	id     uint64
	wrap   func(net.Conn) (net.Conn, error) // of QPs
	secure func(net.Conn) (net.Conn, error) // of plain TCP
}

// reorder has what the session's QPs send and receive pass a link that changes its order, if the options want that.
func (d *dialing) reorder(opts Options) (err error) {
	if opts.Reorder == 0 || d.over.Inside { // within the process all packets pass such a link
		return nil
	}
	if d.link, err = d.over.Reorder(d.ctl.qp.RemoteAddr().String(), opts.Reorder); err == nil {
		d.addr = d.link.Addr()
	}
	return err
}

// open is connect, as long as the control connection is up and the responder is not still.
func (d *dialing) open(ctx context.Context, opts Options) error {
	d.join(d.ctl.qp)
	ctx, cancel := whileMoving(ctx, d.session)
	defer cancel()
	return orStill(ctx, d.ctl.orInterrupted(d.connect(ctx, opts)))
}

// connect brings up all but the control connection.
func (d *dialing) connect(ctx context.Context, opts Options) error {
	opened, err := d.ctl.call(ctx, request{Open: &opts})
	if err != nil {
		return noResponder(err)
	}
	if err := opened.opened(opts); err != nil {
		return err
	}
	if err := d.allocate(opts); err != nil {
		return err
	}
	if err := d.reorder(opts); err != nil {
		return err
	}
	for i := range d.qps {
		if err := d.connectLane(ctx, i, opened); err != nil {
			return err
		}
	}
	up, err := d.ctl.call(ctx, request{Lanes: d.regions()})
	if err != nil {
		return err
	}
	d.ccThere = up.CC
	return d.meet(up.Lanes)
}

// connectControl brings up the control connection, whose MPA options are
// those that always work.
func (d *dialing) connectControl(ctx context.Context, opts Options) error {
	dialer, err := opts.dialer(mpa.Offer{}, hello{control: true, session: d.id})
	if err != nil {
		return err
	}
	dialer.PD, dialer.QP, dialer.Prepare, dialer.Wrap = d.pd, d.ctl.config(), d.ctl.prepare, d.wrap
	_, err = d.over.Dial(ctx, &dialer, d.addr)
	if err != nil {
		d.ctl.qp = nil
	}
	return refusal(err)
}

func (d *dialing) connectLane(ctx context.Context, i int, at answer) (err error) {
	if d.qps[i].qp, err = d.dialQP(ctx, i); err != nil {
		return err
	}
	d.join(d.qps[i].qp)
	if d.opts.NoBaseline {
		return nil
	}
	conn, err := d.dialTCP(ctx, i, at)
	if err == nil {
		d.tcps[i].use(conn, &d.bytes)
	}
	return err
}

func (d *dialing) dialQP(ctx context.Context, i int) (*iwarp.QP, error) {
	h := hello{session: d.id, index: uint16(i), markers: d.opts.Markers, noCRC: d.opts.NoCRC,
		reads: mpa.Depth(d.opts.reads())}
	dialer, err := d.opts.dialer(h.offer(), h)
	if err != nil {
		return nil, err
	}
	dialer.PD, dialer.QP, dialer.Wrap = d.pd, d.qps[i].config(d.opts), d.wrap
	if d.over.Sockets {
		dialer.Wrap, dialer.Net.Control = d.noteCC, d.opts.control(initiator)
	}
	qp, err := d.over.Dial(ctx, &dialer, d.addr)
	return qp, refusal(err)
}

// noteCC takes note of a connection's congestion control, and passes it through wrap.
func (d *dialing) noteCC(conn net.Conn) (net.Conn, error) {
	d.ccHere = ccOfConn(conn)
	if d.wrap == nil {
		return conn, nil
	}
	return d.wrap(conn)
}

// dialer returns what all connections are dialed with. A Start Key has no room for a
// hello: a message in front of it has.
func (o Options) dialer(offer mpa.Offer, h hello) (iwarp.Dialer, error) {
	preset, err := o.preset()
	offer.Dialect, offer.PrivateData = o.Dialect, h.encode()
	offer.Messages = o.Dialect == mpa.DialectStartKey
	return iwarp.Dialer{Preset: preset, MPA: offer, Timeout: dialTimeout}, err
}

// refusal is a rejection by what a responder of iwarp perf says about it. Who is none may say anything there, which the
// error of the Dial has.
func refusal(err error) error {
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) {
		return err
	}
	if told := rejection(rejected.PrivateData); told != nil {
		return &refusedError{told, err}
	}
	return err
}

// A refusedError is a rejection whose reason the responder tells.
type refusedError struct{ told, dial error }

// Error is what the responder says.
func (e *refusedError) Error() string { return e.told.Error() }

// Unwrap returns both errors.
func (e *refusedError) Unwrap() []error { return []error{e.told, e.dial} }

// noResponder adds to a Terminate in answer to the first control message what it means.
func noResponder(err error) error {
	if t := (*iwarp.TerminateError)(nil); errors.As(err, &t) {
		return &strangerError{err}
	}
	return err
}

// A strangerError is a peer that takes connections, and is no responder. What its Terminate says of a message that it
// does not know helps nobody.
type strangerError struct{ error }

// Error says what to do.
func (*strangerError) Error() string {
	return "perf: no iwarp serve or perf --listen answers there: start one"
}

// Unwrap returns the error of the connection.
func (e *strangerError) Unwrap() error { return e.error }

// rejection is what a rejection's private data tells, or nil.
func rejection(text []byte) error {
	var a answer
	if json.Unmarshal(text, &a) != nil {
		return nil
	}
	return a.told()
}

// offer returns what both ends bring to the MPA startup of such a connection.
func (h hello) offer() mpa.Offer {
	return mpa.Offer{Markers: h.markers, NoCRC: h.noCRC, IRD: h.reads, ORD: h.reads}
}
