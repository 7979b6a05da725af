package iwarp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/startup"
	"github.com/goiwarp/iwarp/mpa"
)

// Initiate creates a QP and connects it over a TCP connection on which the two sides have agreed to start
// MPA, this side as Initiator (RFC 5044, section 7.1.3) or Passive (CULLEY). lastMessage, if it is not
// empty, is the last message of the streaming mode, and is sent first. With mpa.DialectStartKey there is
// none, as the other side is by definition the last to send such data. All data of the streaming mode
// must have been read; if a bufio.Reader has read ahead, pass Buffered.
//
// The fallback, which would take another connection, and the TCP settings of the Dialer are not used. If
// Initiate fails it closes the connection, unless the peer rejected it: then the error is a *RejectError,
// and conn is still a stream of octets.
func (d *Dialer) Initiate(ctx context.Context, conn net.Conn, lastMessage []byte) (*QP, error) {
	if conn == nil {
		return nil, &OpError{Op: "initiate", Err: errNoConnGiven}
	}
	owned := false
	qp, err := d.connectNew(&OpError{Op: "initiate", Addr: conn.RemoteAddr()}, func(qp *QP) error {
		owned = true
		return d.initiate(ctx, qp, conn, lastMessage)
	})
	if !owned {
		_ = conn.Close()
	}
	return qp, err
}

// InitiateQP is Initiate for a QP in StateIdle. If it fails, the QP stays in StateIdle.
func (d *Dialer) InitiateQP(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte) error {
	if conn == nil {
		return &OpError{Op: "initiate", Err: errNoConnGiven}
	}
	return (&OpError{Op: "initiate", Addr: conn.RemoteAddr()}).with(d.initiate(ctx, qp, conn, lastMessage))
}

func (d *Dialer) initiate(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte) error {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	owned := false
	err := d.claimed(qp, func(offer mpa.Offer) error {
		// CULLEY, section 8.1: "The "Active" side is defined as the last one to send streaming mode
		// data." [K06]
		if len(lastMessage) > 0 && offer.Dialect == mpa.DialectStartKey {
			return fmt.Errorf("%w: with Start Keys the Initiator does not send the last message of the streaming mode", ErrInvalid)
		}
		owned = true
		return d.connect(ctx, qp, conn, lastMessage, attempt{offer: offer})
	})
	if !owned {
		_ = conn.Close()
	}
	return err
}

// bound puts the Timeout on a context.
func (d *Dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Timeout > 0 {
		return context.WithTimeout(ctx, d.Timeout)
	}
	return ctx, func() {}
}

// connectNew creates a QP in the Dialer's PD, and connects it.
func (d *Dialer) connectNew(op *OpError, connect func(*QP) error) (*QP, error) {
	var rnic *RNIC
	if d.PD == nil {
		rnic = NewRNIC(RNICConfig{})
	}
	cfg := d.Preset.qp(d.QP)
	return connectNew(d.PD, rnic, &cfg, d.Prepare, op, connect)
}

// claimed reserves the QP and settles what to offer, for one attempt to connect it or two.
func (d *Dialer) claimed(qp *QP, connect func(mpa.Offer) error) error {
	if qp == nil {
		return errNoQPGiven
	}
	if d.Timeout < 0 {
		return fmt.Errorf("%w: a Timeout of %v", ErrInvalid, d.Timeout)
	}
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	offer, err := d.Preset.offer(qp.rnic, nil, d.MPA, d.NoReads)
	if err == nil {
		offer, err = qp.narrow(offer)
	}
	if err == nil {
		err = sendable(offer)
	}
	if err != nil {
		return badOffer("Dialer.MPA", err)
	}
	return connect(offer)
}

// An attempt is what an Initiator offers on one connection.
type attempt struct {
	offer  mpa.Offer
	after  error   // why an attempt with revision 2, before this one, failed
	opener mpa.RTR // what to send first although it was not negotiated
	ends   *[]any  // where to note the addresses of a connection that did not come up; nil if nobody asks
}

// negotiated is what the attempt, which began then, has come to.
func (a *attempt) negotiated(n mpa.Negotiated, began time.Time) *Negotiated {
	return &Negotiated{Negotiated: n, RTT: time.Since(began), FellBack: a.after != nil, FallbackReason: a.after, Opener: a.opener}
}

// failed notes on which connection.
func (a *attempt) failed(c addressed) {
	if a.ends != nil {
		*a.ends = logEnds(c)
	}
}

// connect brings up a connection as Initiator. If it fails it closes the connection, unless the peer
// rejected it.
func (d *Dialer) connect(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte, a attempt) error {
	on := &mpaConn{conn, ctx, qp.rnic}
	return a.bringUp(qp, func() (initiated, mpa.Negotiated, error) {
		n, err := d.negotiate(ctx, qp.rnic.phase(conn), lastMessage, a.offer)
		return on, n, err
	})
}

// An initiated connection is one of an Initiator's, over any lower layer.
type initiated interface {
	lowerLayer
	addressed
	io.Closer
}

// bringUp is what an Initiator does over every lower layer. agree has the peer agree, in the way of that layer; what it returns is
// nil as long as there is nothing to close.
func (a *attempt) bringUp(qp *QP, agree func() (initiated, mpa.Negotiated, error)) error {
	counts := tally{&qp.rnic.startup}
	counts.count(func(s *StartupStats) { s.Started++ })
	began := time.Now()
	on, n, err := agree()
	if err == nil {
		err = qp.enterRTS(on, a.negotiated(n, began), lease{})
	}
	if on == nil {
		counts.failed(err)
		return err
	}
	if err != nil {
		a.failed(on)
	}
	return counts.record(on, err)
}

// verify has the consumer look at a Reply that accepts the connection, and that we can accept.
//
// RFC 5044, section 7.1.2: "If the MPA Reply Frame is properly formatted but is the Private Data is not
// acceptable, or if the Rejected Connection bit is set to '1', the implementation MUST exit MPA, leaving the
// TCP connection open." [Q10]
func (d *Dialer) verify(conn net.Conn, m *mpa.Initiator) error {
	if d.Verify == nil || m.Rejected() != nil || m.Negotiated().TerminateCode != 0 {
		return nil
	}
	err := unlessPanic(func() { _ = conn.Close() }, func() error { return d.Verify(d.Preset.takeDepths(m.Negotiated())) })
	if err != nil {
		return &VerifyError{Err: err, Conn: conn}
	}
	return nil
}

// negotiate ends the streaming mode, sends the Request and takes the Reply.
func (d *Dialer) negotiate(ctx context.Context, p startup.Phase, lastMessage []byte, offer mpa.Offer) (n mpa.Negotiated, err error) {
	m, err := mpa.NewInitiator(offer)
	if err != nil {
		return n, err
	}
	if len(lastMessage) > 0 {
		if err := p.Send(ctx, lastMessage); err != nil {
			return n, err
		}
	}
	p.Verify = func() error { return d.verify(p.Conn, m) }
	err = p.Exchange(ctx, m, m.Start(time.Now()))
	rejected := m.Rejected()
	if r, ok := errors.AsType[*mpa.RejectError](err); ok {
		rejected = r
	} else if err != nil {
		return n, err
	}
	switch {
	case rejected == nil:
		return d.Preset.takeDepths(m.Negotiated()), nil
	case rejected.Closed:
		_ = p.Conn.Close() // as the peer has
	}
	return n, &RejectError{RejectError: rejected, Conn: p.Conn}
}
