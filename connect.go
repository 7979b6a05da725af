package iwarp

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/startup"
	"github.com/goiwarp/iwarp/mpa"
)

// Every connection goes one way to RTS, over the dialects that docs/dialects.md describes:
//
//	Dial, DialQP ────┬─── openTCP ──┐
//	Initiate, InitiateQP ───────────┴─> Dialer.connect: negotiate ──┐
//	                 └─ over SCTP ────> Dialer.dialSCTP ────────────┴─> attempt.bringUp ──┐
//	                                                                                      ├─> QP.enterRTS ─> QP.start
//	Listener, Respond ─> Request ─> Accept, AcceptQP ─> Request.connect: answer ──────────┘
//
//  1. The QP is created (connectNew), or the caller's is reserved (QP.claim); Dialer, preset, QP and RNIC together
//     settle the offer.
//  2. Package startup carries the frames between the connection and an mpa.Initiator or mpa.Responder (Phase.Exchange):
//     the one place where a context, the machine's deadline and a socket meet. It reads no octet beyond the startup
//     frames. Over SCTP package association carries the session's control messages, for sctp's machine (dial_sctp.go,
//     listen_sctp.go; dial_share.go has the associations that Dials share).
//  3. QP.enterRTS puts what was agreed on into engine.Params and starts the driver, over either. An RTR indication is the
//     engine's first output; the receiving goroutine sends it when it begins, with what the consumer has posted by then.
//     What is up and cannot be used is turned down: a Terminate, an end in order, and time for both to arrive.
//  4. Dialer.dial makes a second attempt, with revision 1, if the peer turns out not to know revision 2.
//
// ModifyRTS, where the consumer has done the startup itself, goes straight to QP.start.

// connectNew creates a QP in pd, or if that is nil in a Protection Domain of its own on rnic, has it
// prepared, and connects it. If that fails, nothing is left of the QP, and the error is op's. A panic
// of prepare, or of what connect calls, leaves nothing of the QP either.
func connectNew(pd *PD, rnic *RNIC, cfg *QPConfig, prepare func(*QP) error, op *OpError, connect func(*QP) error) (*QP, error) {
	grow(0)
	qp, err := createQP(pd, rnic, cfg)
	if err != nil {
		return nil, op.with(err)
	}
	err = unlessPanic(qp.undo, func() error {
		if prepare != nil {
			if err := prepare(qp); err != nil {
				return err
			}
		}
		return connect(qp)
	})
	if err != nil {
		qp.undo()
		return nil, op.with(err)
	}
	return qp, nil
}

// undo releases a new QP. It may have a connection: one that Prepare has made by itself.
func (qp *QP) undo() {
	qp.mu.Lock()
	connected := qp.link != nil
	qp.mu.Unlock()
	if connected {
		qp.abortAndWait(errAborted)
	}
	qp.destroy()
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
	start(qp *QP, n *Negotiated, l lease) error
	// turnDown ends it: the peer learns why by a Terminate.
	turnDown(n *mpa.Negotiated) *engine.Failure
}

// enterRTS starts the QP when its startup is over, or tells the peer why that cannot be. [E05] [E10]
//
// RFC 6581, section 9.3: other local errors of the establishment are told to the peer with "local
// catastrophic", code 5. [E11]
func (qp *QP) enterRTS(on lowerLayer, n *Negotiated, l lease) error {
	if n.TerminateCode != 0 {
		err := publicError(on.turnDown(&n.Negotiated))
		if t := new(TerminateError); n.TerminateCode != mpa.CodeLocalCatastrophic && errors.As(err, &t) {
			return &NegotiationError{TerminateError: t, Negotiated: n.Negotiated}
		}
		return err
	}
	qp.rnic.resolve(&n.Negotiated)
	err := on.start(qp, n, l)
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
}

func (c *mpaConn) start(qp *QP, n *Negotiated, l lease) error {
	return qp.start(qp.newConn(c.Conn), n, qp.stream(), l)
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
func (t tally) record(c io.Closer, err error) error {
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
