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
// and conn is still a stream of bytes, which the caller must close, unless Closed is set in the error.
func (d *Dialer) Initiate(ctx context.Context, conn net.Conn, lastMessage []byte) (*QP, error) {
	if conn == nil {
		return nil, &OpError{Op: "initiate", Err: errNoConnGiven}
	}
	op := &OpError{Op: "initiate", Addr: conn.RemoteAddr()}
	qp, err := d.newQP(ctx)
	if err != nil {
		_ = conn.Close()
		return nil, op.with(err)
	}
	up := false
	defer undoUnless(qp, &up)
	if err := d.initiate(ctx, qp, conn, lastMessage); err != nil {
		return nil, op.with(err)
	}
	up = true
	return qp, nil
}

// InitiateQP is Initiate for a QP in StateIdle. If it fails, the QP stays in StateIdle.
func (d *Dialer) InitiateQP(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte) error {
	if conn == nil {
		return &OpError{Op: "initiate", Err: errNoConnGiven}
	}
	return (&OpError{Op: "initiate", Addr: conn.RemoteAddr()}).with(d.initiate(ctx, qp, conn, lastMessage))
}

func (d *Dialer) initiate(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte) error {
	if err := d.given(ctx); err != nil {
		_ = conn.Close()
		return err
	}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	offer, err := d.claim(qp)
	if err != nil {
		_ = conn.Close()
		return err
	}
	defer qp.unclaim()
	// CULLEY, section 8.1: "The "Active" side is defined as the last one to send streaming mode data." [K06]
	if len(lastMessage) > 0 && offer.Dialect == mpa.DialectStartKey {
		_ = conn.Close()
		return fmt.Errorf("%w: with Start Keys the Initiator does not send the last message of the streaming mode",
			ErrInvalid)
	}
	return d.connect(ctx, qp, conn, lastMessage, &attempt{offer: offer})
}

// bound puts the Timeout on a context.
func (d *Dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Timeout > 0 {
		return context.WithTimeout(ctx, d.Timeout)
	}
	return ctx, func() {}
}

// newQP creates a QP in the Dialer's PD, ready to be connected.
func (d *Dialer) newQP(ctx context.Context) (*QP, error) {
	if err := d.given(ctx); err != nil {
		return nil, err
	}
	var rnic *RNIC
	if d.PD == nil {
		rnic = NewRNIC(RNICConfig{})
	}
	cfg := d.Preset.qp(d.QP)
	return newQP(d.PD, rnic, &cfg, d.Prepare)
}

// claim reserves the QP and settles what to offer, for one attempt to connect it or two. The caller calls unclaim
// after that.
func (d *Dialer) claim(qp *QP) (mpa.Offer, error) {
	if err := qp.made(); err != nil {
		return mpa.Offer{}, err
	}
	if d.Timeout < 0 {
		return mpa.Offer{}, fmt.Errorf("%w: a Timeout of %v", ErrInvalid, d.Timeout)
	}
	if err := qp.claimFor(); err != nil {
		return mpa.Offer{}, err
	}
	offer, err := d.Preset.offer(qp.rnic, nil, d.MPA, d.NoReads)
	if err == nil {
		offer, err = narrow(qp, offer)
	}
	if err == nil {
		err = sendable(offer)
	}
	if err != nil {
		qp.unclaim()
	}
	return offer, badOffer("Dialer.MPA", err)
}

// An attempt is what an Initiator offers on one connection.
type attempt struct {
	offer  mpa.Offer
	after  error   // why an attempt with revision 2, before this one, failed
	opener mpa.RTR // what to send first although it was not negotiated
	began  time.Time
	ends   []any // the addresses of the connection, if it did not come up
	// untouched tells that nobody but package net has set options of the connection.
	untouched bool
}

// negotiated returns what the attempt has come to.
func (a *attempt) negotiated(n mpa.Negotiated) *Negotiated {
	return &Negotiated{
		Negotiated: n, RTT: time.Since(a.began), FellBack: a.after != nil, FallbackReason: a.after, Opener: a.opener,
	}
}

// countStart counts the attempt.
func (a *attempt) countStart(qp *QP) startupCounters {
	counts := startupCounters{&qp.rnic.startup}
	counts.count(func(s *StartupStats) { s.Started++ })
	a.began = time.Now()
	return counts
}

// connect brings up a connection as Initiator. If it fails it closes the connection, unless the peer
// rejected it.
func (d *Dialer) connect(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte, a *attempt) error {
	counts := a.countStart(qp)
	n, err := d.negotiate(ctx, qp.rnic.phase(conn), lastMessage, a.offer)
	return a.conclude(qp, &mpaConn{conn, ctx, qp.rnic, a.untouched}, n, counts, err)
}

// An initiated connection is one of an Initiator's, over any lower layer.
type initiated interface {
	lowerLayer
	addressed
	io.Closer
}

// conclude starts the QP if the peer has agreed, and counts what has become of the attempt.
func (a *attempt) conclude(qp *QP, on initiated, n mpa.Negotiated, counts startupCounters, err error) error {
	if err == nil {
		err = qp.enterRTS(on, a.negotiated(n), ticket{})
	}
	if err != nil {
		a.ends = logEnds(on)
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
	err := unlessPanic(func() { _ = conn.Close() },
		func() error { return d.Verify(d.Preset.takeDepths(m.Negotiated())) })
	if err != nil {
		return &VerifyError{Err: err, Conn: conn}
	}
	return nil
}

// negotiate ends the streaming mode, sends the Request and takes the Reply.
func (d *Dialer) negotiate(
	ctx context.Context, p startup.Phase, lastMessage []byte, offer mpa.Offer,
) (n mpa.Negotiated, err error) {
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
		_ = p.Conn.Close()
	}
	return n, &RejectError{RejectError: rejected, Conn: p.Conn}
}

// fallBack makes the second attempt, with revision 1. What was offered holds there too, although revision 1 has
// no words for all of it: if the connection was to be peer-to-peer, an empty Write or Read of ours opens the
// peer's direction.
//
// RFC 6581, section 10: "the initiator MAY attempt to establish an RDMA connection using the unenhanced
// MPA protocol". [E13]
func (d *Dialer) fallBack(ctx context.Context, qp *QP, network, addr string, was *attempt, first error) error {
	a, err := d.plain(was.offer)
	if err != nil {
		return &fallbackError{first: first, second: err}
	}
	a.after = first
	qp.rnic.startup.count(func(s *StartupStats) { s.Fallbacks++ })
	about := append([]any{"qp", qp.num, "cause", first.Error()}, was.ends...)
	qp.rnic.log.Log(ctx, levelConnection, "iwarp: trying again with "+plainer(first), about...)
	closeRejected(first)
	if err := d.dialOnce(ctx, qp, network, addr, a); err != nil {
		return &fallbackError{first: first, second: err}
	}
	return nil
}

// plain returns what an offer becomes in revision 1. What cannot be kept there is an error, before there is a
// connection.
func (d *Dialer) plain(o mpa.Offer) (*attempt, error) {
	a := new(attempt)
	if !o.ClientServer {
		if a.opener = opener(o.RTR); a.opener == 0 {
			return nil, errSendOpener
		}
	}
	o.Dialect = mpa.DialectRFC5044
	a.offer = d.Preset.addDepths(o, o.Dialect, nil)
	if err := sendable(a.offer); err != nil {
		return nil, badOffer("Dialer.MPA", err)
	}
	return a, nil
}

var errSendOpener = fmt.Errorf("%w: only a Send is offered as RTR indication, and in revision 1 it would take a "+
	"receive of the peer's consumer", errors.ErrUnsupported)

// opener returns the kind of RTR indication to send where none is negotiated, of those that are offered: one
// that the peer's consumer does not see, or none.
func opener(offered mpa.RTR) mpa.RTR {
	switch {
	case offered == 0, offered&mpa.RTRWrite != 0:
		return mpa.RTRWrite
	}
	return offered & mpa.RTRRead
}

// advisesFallback reports whether the peer seems not to know RFC 6581.
func advisesFallback(err error) bool {
	var s *mpa.StartupError
	var r *mpa.RejectError
	return errors.As(err, &s) && s.Fallback || errors.As(err, &r) && r.Fallback || errors.As(err, new(fallbackAdviser))
}

// closeRejected closes the connection that a rejection has left open, and that nobody will get.
func closeRejected(err error) {
	if c := connOf(err); c != nil {
		_ = c.Close()
	}
}
