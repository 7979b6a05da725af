package iwarp

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// Dial connects to a Responder with the defaults of a [Dialer], in a Protection
// Domain of its own: memory is registered with qp.PD().
func Dial(ctx context.Context, network, addr string) (*QP, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// A Dialer connects QPs as the Initiator of the MPA startup.
type Dialer struct {
	// PD is where Dial creates the QP. If nil, an RNIC and a PD are made for it;
	// memory is then registered with qp.PD().
	PD *PD
	// QP configures the QP that Dial creates.
	QP QPConfig
	// Preset, if there is one, has what the peer needs where the settings here are
	// zero.
	Preset *Preset
	// MPA is what is offered to the peer. Kind may narrow that of the QP, which it is
	// if zero; Markers adds to what QP and RNIC ask for. If IRD and ORD are zero they
	// become DefaultReadDepth.
	MPA mpa.Offer
	// NoReads leaves an IRD and ORD of zero as they are: no RDMA Reads.
	NoReads bool
	// NoFallback keeps from trying again with revision 1, on a new connection, when
	// the peer refuses revision 2 by closing the first.
	NoFallback bool
	// Timeout bounds a whole Dial, beside the context. If zero, there is no other
	// bound than those of TCP and of MPA.Timeout.
	Timeout time.Duration
	// Prepare, if it is set, gets the QP that Dial has created before the
	// connection comes up: the place to post receives.
	Prepare func(*QP) error
	// Wrap, if it is set, gets every TCP connection that Dial and Connect open, before
	// the startup, and returns what to use in its place: one that records or encrypts
	// what passes, or spoils it for a test. Unless that is the connection itself it is
	// used by the calls of a net.Conn. Where Wrap fails the connection is closed.
	Wrap func(net.Conn) (net.Conn, error)
	// Net dials TCP. The zero value will do.
	Net net.Dialer
}

// Dial connects to a Responder at addr. network is "tcp", "tcp4" or "tcp6". The
// error is an *OpError; a rejection is a *RejectError in it, which hands over
// the TCP connection.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*QP, error) {
	return d.dial(addr, func(qp *QP) error { return d.Connect(ctx, qp, network, addr) })
}

// Initiate is the function Initiate with the Dialer's settings, and without a last
// message.
func (d *Dialer) Initiate(ctx context.Context, conn net.Conn) (*QP, error) {
	return d.startMPA(ctx, conn, nil)
}

func (d *Dialer) dial(to string, connect func(*QP) error) (*QP, error) {
	pd, err := d.PD, error(nil)
	if pd == nil {
		pd, err = NewRNIC(RNICConfig{}).allocPD(true)
	}
	if err != nil {
		return nil, err
	}
	qp, err := pd.CreateQP(d.Preset.qp(d.QP))
	if err != nil {
		return nil, err
	}
	if d.Prepare != nil {
		if err := d.Prepare(qp); err != nil {
			qp.destroy()
			return nil, &OpError{Op: "dial", To: to, Err: err}
		}
	}
	if err := connect(qp); err != nil {
		qp.destroy()
		return nil, err
	}
	return qp, nil
}

// Connect connects a QP in StateIdle, which stays Idle if that fails.
func (d *Dialer) Connect(ctx context.Context, qp *QP, network, addr string) error {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	err := d.with(qp, func(offer mpa.Offer) error {
		err := d.attempt(ctx, qp, network, addr, offer, nil)
		if err != nil && !d.NoFallback && d.Preset.fallsBack() && fallbackAdvised(err) && ctx.Err() == nil {
			err = d.fallBack(ctx, qp, network, addr, offer, err)
		}
		return err
	})
	if err != nil {
		return &OpError{Op: "dial", To: network + " " + addr, Err: err}
	}
	return nil
}

// bound puts the Timeout on a context.
func (d *Dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Timeout > 0 {
		return context.WithTimeout(ctx, d.Timeout)
	}
	return context.WithCancel(ctx)
}

// with claims the QP and settles the offer for one or two attempts.
func (d *Dialer) with(qp *QP, connect func(mpa.Offer) error) error {
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	offer, err := d.Preset.settle(qp.rnic, nil, d.MPA, d.NoReads)
	if err == nil {
		offer, err = qp.narrow(offer)
	}
	if err != nil {
		return err
	}
	return connect(offer)
}

// attempt is one TCP connection and one startup.
func (d *Dialer) attempt(ctx context.Context, qp *QP, network, addr string, offer mpa.Offer, first error) error {
	c, err := d.open(ctx, network, addr)
	if err != nil {
		return err
	}
	return d.initiate(ctx, qp, c, offer, first)
}

// open opens a TCP connection, and has it wrapped.
func (d *Dialer) open(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.Net.DialContext(ctx, network, addr)
	if err != nil || d.Wrap == nil {
		return c, err
	}
	wrapped, err := d.Wrap(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return wrapped, nil
}

// fallBack tries again with revision 1.
//
// RFC 6581, section 10: "the initiator MAY attempt to establish an RDMA
// connection using the unenhanced MPA protocol". [E13]
func (d *Dialer) fallBack(ctx context.Context, qp *QP, network, addr string, offer mpa.Offer, first error) error {
	qp.rnic.startup.count(func(s *StartupStats) { s.Fallbacks++ })
	qp.rnic.log.Log(ctx, LevelConnection, "iwarp: trying again with revision 1", "peer", addr, "cause", first.Error())
	closeRejected(first)
	offer.Dialect = mpa.DialectRFC5044
	offer = d.Preset.sayDepths(offer, offer.Dialect, nil)
	if err := d.attempt(ctx, qp, network, addr, offer, first); err != nil {
		return &fallbackError{addr: addr, first: first, second: err}
	}
	return nil
}

func fallbackAdvised(err error) bool {
	var s *mpa.StartupError
	var r *mpa.RejectError
	return errors.As(err, &s) && s.Fallback || errors.As(err, &r) && r.Fallback
}

// closeRejected closes the connection that a rejection has left open and that
// nobody will get.
func closeRejected(err error) {
	var r *RejectError
	if errors.As(err, &r) {
		_ = r.Conn.Close()
	}
}

// initiate runs the startup as Initiator and starts the QP. If it fails the
// connection is closed, unless the peer rejected it.
func (d *Dialer) initiate(ctx context.Context, qp *QP, c net.Conn, offer mpa.Offer, first error) error {
	counts := tally{&qp.rnic.startup}
	counts.count(func(s *StartupStats) { s.Started++ })
	n, err := initiate(ctx, qp.rnic, c, offer)
	if err == nil {
		err = enter(ctx, qp, c, Negotiated{Negotiated: d.Preset.heed(n), FellBack: first != nil, FallbackReason: first})
	}
	if err == nil {
		counts.count(func(s *StartupStats) { s.Established++ })
		return nil
	}
	var rejected *RejectError
	if !errors.As(err, &rejected) {
		_ = c.Close()
	}
	counts.failed(err)
	return err
}

// initiate sends the Request and reads the Reply.
func initiate(ctx context.Context, r *RNIC, c net.Conn, offer mpa.Offer) (n mpa.Negotiated, err error) {
	m, err := mpa.NewInitiator(offer)
	if err != nil {
		return n, err
	}
	err = exchange(ctx, r.log, c, m, m.Start(time.Now()))
	rejected := m.Rejected()
	if err != nil && !errors.As(err, &rejected) {
		return n, err
	}
	if rejected == nil {
		return m.Negotiated(), nil
	}
	if rejected.Closed {
		_ = c.Close() // as the peer has
	}
	return n, &RejectError{RejectError: rejected, Conn: c}
}

// enter starts the QP, or tells the peer why that cannot be.
//
// RFC 6581, section 9.3: other local errors of the establishment are told to the
// peer with "local catastrophic", code 5. [E11]
func enter(ctx context.Context, qp *QP, c net.Conn, n Negotiated) error {
	if n.TerminateCode != 0 {
		return turnDown(ctx, c, n.Negotiated)
	}
	qp.rnic.resolve(&n.Negotiated)
	err := qp.start(tcp.New(c), n, qp.stream())
	if err != nil {
		n.TerminateCode = mpa.CodeLocalCatastrophic
		_ = turnDown(ctx, c, n.Negotiated)
	}
	return err
}
