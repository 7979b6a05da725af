package iwarp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/startup"
	"github.com/goiwarp/iwarp/mpa"
)

// Every connection goes one way to RTS, over the dialects that docs/dialects.md describes:
//
//	Dial, DialQP ─> dial ─> dialOnce ─┬─ openTCP ─┬─> connect: negotiate ──────────┐
//	Initiate, InitiateQP ─> initiate ─┼───────────┘                                ├─> attempt.conclude ──┐
//	                                  └─> dialSegments: SegmentNetwork.Dial ───────┘                      ├─> QP.enterRTS
//	Listener, Respond ─> Request ─> Accept, AcceptQP ─> Request.connect: acceptMPA, acceptSession ────────┘
//
//  1. The QP is created and prepared (newQP), or the caller's is reserved (QP.claimFor); Dialer, preset, QP and RNIC
//     together settle the offer.
//  2. Package startup carries the frames between the connection and an mpa.Initiator or mpa.Responder (Phase.Exchange):
//     the one place where a context, the machine's deadline and a socket meet. It reads no byte beyond the startup
//     frames. A SegmentNetwork has a startup of its own (segmentnetwork.go).
//  3. QP.enterRTS puts what was agreed on into engine.Params and starts the driver, over either. An RTR indication is
//     the engine's first output; the receiving goroutine sends it when it begins, with what the consumer has posted by
//     then. What is up and cannot be used is turned down: a Terminate, an end in order, and time for both to arrive.
//  4. Dialer.dial makes a second attempt, with revision 1, if the peer turns out not to know revision 2.
//
// ModifyRTS, where the consumer has done the startup itself, goes straight to newConnecting.

// newQP creates a QP in pd, or if that is nil in a Protection Domain of its own on rnic, and has it prepared. If that
// fails, or panics, nothing is left of the QP.
func newQP(pd *PD, rnic *RNIC, cfg *QPConfig, prepare func(*QP) error) (*QP, error) {
	driver.GrowStack()
	qp, err := createQP(pd, rnic, cfg)
	if err != nil {
		return nil, err
	}
	ready := false
	defer undoUnless(qp, &ready)
	if err := qp.prepare(prepare); err != nil {
		return nil, err
	}
	ready = true
	return qp, nil
}

// prepare calls the consumer's Prepare, if there is one.
func (qp *QP) prepare(f func(*QP) error) error {
	if f == nil {
		return nil
	}
	returned := make(chan struct{})
	qp.preparing.Store(&returned)
	defer close(returned)
	defer qp.preparing.Store(nil)
	return f(qp)
}

// undoUnless releases a new QP, unless the call that has created it has kept it. A call defers it, as a panic of the
// consumer's code is to leave nothing of the QP either. The QP may have a connection: one that Prepare has made by
// itself.
func undoUnless(qp *QP, kept *bool) {
	if *kept {
		return
	}
	for !qp.destroy() {
		qp.abortAndWait(errAborted)
	}
}

// unlessPanic calls f, in which the consumer's code runs. If that panics, or ends the goroutine, undo
// gives back what would be lost: a server may recover from the panics of one connection and go on with
// the others.
func unlessPanic(undo func(), f func() error) error {
	returned := false
	defer func() {
		if !returned {
			undo()
		}
	}()
	err := f()
	returned = true
	return err
}

func createQP(pd *PD, rnic *RNIC, cfg *QPConfig) (*QP, error) {
	if pd != nil {
		return pd.CreateQP(*cfg)
	}
	pd, err := rnic.allocPD(true)
	if err != nil {
		return nil, err
	}
	qp, err := pd.CreateQP(*cfg)
	if err != nil {
		_ = pd.Close()
	}
	return qp, err
}

// phase returns the startup phase of a connection, whose frames are logged.
func (r *RNIC) phase(c net.Conn) startup.Phase {
	p := startup.Phase{Conn: c}
	if r.logs() {
		p.Trace = func(sent bool, frame []byte) { logFrame(r.log, c, sent, frame) }
	}
	return p
}

// A lowerLayer is what startup has brought up for a QP: an MPA connection, or a session over SCTP.
type lowerLayer interface {
	// start starts the QP's driver on it.
	start(qp *QP, n *Negotiated, t ticket) error
	// turnDown ends it: the peer learns why by a Terminate.
	turnDown(n *mpa.Negotiated) *engine.Failure
}

// enterRTS starts the QP when its startup is over, or tells the peer why that cannot be. [E05] [E10]
//
// RFC 6581, section 9.3: other local errors of the establishment are told to the peer with "local
// catastrophic", code 5. [E11]
func (qp *QP) enterRTS(on lowerLayer, n *Negotiated, t ticket) error {
	if n.TerminateCode != 0 {
		err := publicError(on.turnDown(&n.Negotiated))
		if t := new(TerminateError); n.TerminateCode != mpa.CodeLocalCatastrophic && errors.As(err, &t) {
			return &NegotiationError{TerminateError: t, Negotiated: n.Negotiated}
		}
		return err
	}
	qp.rnic.resolve(&n.Negotiated)
	err := on.start(qp, n, t)
	if err != nil {
		n.TerminateCode = mpa.CodeLocalCatastrophic
		on.turnDown(&n.Negotiated)
	}
	return err
}

// An mpaConn is a connection that the startup frames have brought up.
type mpaConn struct {
	net.Conn
	ctx  context.Context
	rnic *RNIC
	// untouched tells that nobody but package net has set options of the connection.
	untouched bool
}

func (c *mpaConn) start(qp *QP, n *Negotiated, t ticket) error {
	u := newConnecting(qp, n, qp.stream(), t, c.Conn)
	u.untouched = c.untouched
	return u.overTCP(c.Conn)
}

// turnDown gives the Terminate the time to arrive. A Responder that must wait for an FPDU sends none: it
// closes in order. [Q11]
func (c *mpaConn) turnDown(n *mpa.Negotiated) *engine.Failure {
	fpdu, why := engine.TurnDown(*n)
	c.rnic.phase(c.Conn).TurnDown(c.ctx, fpdu)
	return why
}

// record counts what became of a startup, and closes the connection if nothing did, unless the error hands it
// over to the consumer.
func (t startupCounters) record(c io.Closer, err error) error {
	if err == nil {
		t.count(func(s *StartupStats) { s.Established++ })
		return nil
	}
	if connOf(err) == nil {
		_ = c.Close()
	}
	if !errors.Is(err, ErrEvicted) { // which the Listener has counted
		t.failed(err)
	}
	return err
}

// badOffer names the setting that package mpa, or a preset, finds a value out of range in, by whatever entry point it
// came. Other errors stay as they are.
func badOffer(setting string, err error) error {
	if err == nil || !errors.Is(err, mpa.ErrOffer) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrInvalid, setting, plain{err})
}

// plain is an error without the package's name in front.
type plain struct{ error }

func (p plain) Error() string { return text(p.error) }

func (p plain) Unwrap() error { return p.error }

// sendable refuses an offer that no startup frame can say, before there is a connection.
func sendable(o mpa.Offer) error {
	_, err := o.Resolved()
	return err
}

// checkKind refuses values that are no Kind. The error wraps mpa.ErrOffer.
func checkKind(k mpa.Kind) error {
	if k.Version(0) || k.Version(1) {
		return nil
	}
	return fmt.Errorf("%w: there is no %v", mpa.ErrOffer, k)
}

// checkDialects refuses values that are no dialect.
func checkDialects(dialects []mpa.Dialect) error {
	for _, d := range dialects {
		if !slices.Contains(mpa.Dialects(), d) {
			return fmt.Errorf("%w: ListenConfig.Dialects: there is no %v", ErrInvalid, d)
		}
	}
	return nil
}

// These are the depths of RDMA Reads where the consumer does not say: what RNICs commonly offer, and how far our IRD
// may grow if the peer asks for more.
const (
	defaultReadDepth = 32
	defaultMaxIRD    = 128
)

// depths gives depths to an offer that has none, and keeps them within the RNIC's limit. [Z29]
func (r *RNIC) depths(o mpa.Offer, noReads bool) (mpa.Offer, error) {
	if err := r.checkIRD(o.IRD); err != nil {
		return o, err
	}
	most := mpa.MaxDepth // a larger one is no depth, and package mpa says so
	if r.limits.IRD > 0 {
		most = mpa.Depth(min(r.limits.IRD, int(most)))
	}
	if o.IRD == 0 && o.ORD == 0 && !noReads {
		o.IRD, o.ORD = min(defaultReadDepth, most), defaultReadDepth
	}
	if o.MaxIRD == 0 && !noReads {
		o.MaxIRD = defaultMaxIRD
	}
	o.MaxIRD = min(o.MaxIRD, most)
	return o, nil
}

// checkIRD refuses an IRD beyond the limit of the RNIC.
func (r *RNIC) checkIRD(ird mpa.Depth) error {
	if limit := r.limits.IRD; limit > 0 && int(ird) > limit && ird != mpa.NoNegotiation {
		return &LimitError{Resource: "IRD of a connection", Limit: int64(limit), Wanted: int64(ird)}
	}
	return nil
}

// resolve puts numbers where 0x3FFF left the depths to the ULP: the default, or what is known of the
// peer.
func (r *RNIC) resolve(n *mpa.Negotiated) {
	if n.ORD == mpa.NoNegotiation {
		n.ORD = min(defaultReadDepth, n.PeerIRD)
	}
	if n.IRD == mpa.NoNegotiation {
		n.IRD = defaultReadDepth
		if n.PeerORD != mpa.NoNegotiation {
			n.IRD = max(n.IRD, min(n.PeerORD, defaultMaxIRD))
		}
	}
	if r.limits.IRD > 0 {
		n.IRD = mpa.Depth(min(int(n.IRD), r.limits.IRD))
	}
}
