package iwarp

import (
	"cmp"
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
	// MPA is what is offered to the peer. If Kind is zero, the RNIC's; if IRD and ORD are zero they become
	// DefaultReadDepth.
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
	// Net dials TCP. The zero value will do.
	Net net.Dialer
}

// Dial connects to a Responder at addr. network is "tcp", "tcp4" or "tcp6". The
// error is an *OpError; a rejection is a *RejectError in it, which hands over
// the TCP connection.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*QP, error) {
	return d.dial(addr, func(qp *QP) error { return d.Connect(ctx, qp, network, addr) })
}

// Initiate makes a QP of a TCP connection on which the two sides have agreed to
// start MPA, this side as Initiator (RFC 5044, section 7.1.3). Of the streaming
// mode nothing may be unread. After a failure the connection is closed, but for a
// rejection.
func (d *Dialer) Initiate(ctx context.Context, conn net.Conn) (*QP, error) {
	return d.dial(conn.RemoteAddr().String(), func(qp *QP) error { return d.Upgrade(ctx, qp, conn) })
}

func (d *Dialer) dial(to string, connect func(*QP) error) (*QP, error) {
	pd, err := d.PD, error(nil)
	if pd == nil {
		pd, err = NewRNIC(RNICConfig{}).allocPD(true)
	}
	if err != nil {
		return nil, err
	}
	qp, err := pd.CreateQP(d.QP)
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
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	err := d.with(qp, func(offer mpa.Offer) error {
		err := d.attempt(ctx, qp, network, addr, offer, nil)
		if err != nil && !d.NoFallback && fallbackAdvised(err) && ctx.Err() == nil {
			err = d.fallBack(ctx, qp, network, addr, offer, err)
		}
		return err
	})
	if err != nil {
		return &OpError{Op: "dial", To: network + " " + addr, Err: err}
	}
	return nil
}

// with claims the QP and settles the offer for one or two attempts.
func (d *Dialer) with(qp *QP, connect func(mpa.Offer) error) error {
	offer, err := qp.rnic.depths(d.MPA, d.NoReads)
	offer.Kind = cmp.Or(offer.Kind, qp.rnic.kind)
	if err != nil {
		return err
	}
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	return connect(offer)
}

// attempt is one TCP connection and one startup.
func (d *Dialer) attempt(ctx context.Context, qp *QP, network, addr string, offer mpa.Offer, first error) error {
	c, err := d.Net.DialContext(ctx, network, addr)
	if err != nil {
		return err
	}
	return d.initiate(ctx, qp, c, offer, first)
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

// Upgrade is Initiate for a QP in StateIdle.
func (d *Dialer) Upgrade(ctx context.Context, qp *QP, conn net.Conn) error {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	err := d.with(qp, func(offer mpa.Offer) error { return d.initiate(ctx, qp, conn, offer, nil) })
	if err != nil {
		return &OpError{Op: "initiate", Addr: conn.RemoteAddr(), Err: err}
	}
	return nil
}

// initiate runs the startup as Initiator and starts the QP. If it fails the
// connection is closed, unless the peer rejected it.
func (d *Dialer) initiate(ctx context.Context, qp *QP, c net.Conn, offer mpa.Offer, first error) error {
	counts := tally{&qp.rnic.startup}
	counts.count(func(s *StartupStats) { s.Started++ })
	n, err := initiate(ctx, qp.rnic, c, offer)
	if err == nil {
		err = enter(ctx, qp, c, Negotiated{Negotiated: n, FellBack: first != nil, FallbackReason: first})
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
	if err := exchange(ctx, r.log, c, m, m.Start(time.Now())); err != nil {
		return n, err
	}
	if r := m.Rejected(); r != nil {
		return n, &RejectError{RejectError: r, Conn: c}
	}
	return m.Negotiated(), nil
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
	err := qp.start(tcp.New(c), n)
	if err != nil {
		n.TerminateCode = mpa.CodeLocalCatastrophic
		_ = turnDown(ctx, c, n.Negotiated)
	}
	return err
}
