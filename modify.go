package iwarp

import (
	"cmp"
	"fmt"
	"math/bits"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// Modify carries out a state transition of the RDMA verbs (section 6.2) that the consumer
// may ask for: RTS to Closing (without draining: work under way makes it a bad close), RTS
// to Terminate, RTS or Idle to Error, and Error to Idle. Dialer, Request and ModifyRTS
// put a QP into RTS.
//
// The transition to Idle also makes a QP whose connection has ended ready for another one. Until then it takes no work,
// even in StateIdle, so that nobody waits for a connection that is over. A transition that is not the consumer's is
// ErrBadState, and a state that Modify never leads to is ErrInvalid.
func (qp *QP) Modify(to State) error {
	if err := qp.made(); err != nil {
		return err
	}
	if err := qp.modify(engine.State(to)); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	return nil
}

// notThere adds to the error of a transition that the engine does not make what to do instead.
func notThere(to State, err error) error {
	switch {
	case to > StateClosed:
		return fmt.Errorf("%w: there is no state %d", ErrInvalid, to)
	case to == StateClosed:
		return fmt.Errorf("%w: the state Closed is that of a connection that has ended in order: Modify to Closing, or "+
			"Close", ErrInvalid)
	case to == StateIdle:
		return fmt.Errorf("%w: end the connection first, by Modify to Closing or Error, and wait for Done", err)
	case to == StateRTS:
		return fmt.Errorf("%w: a Dialer, a Request and ModifyRTS lead there", err)
	}
	return fmt.Errorf("%w: there is no connection to end", err)
}

func (qp *QP) modify(to engine.State) error {
	if to == engine.Idle {
		awaitLast(qp)
	}
	qp.mu.Lock()
	switch c := qp.conn.Load(); {
	case qp.claim == released:
	case to == engine.Idle && qp.status().leaving:
		defer qp.mu.Unlock()
		return stillClosing(qp.endedError())
	case c != nil:
		qp.mu.Unlock()
		return refusedModify(qp, to, c.Modify(to))
	case to == engine.Idle:
		qp.reset()
		qp.mu.Unlock()
		qp.inbox.restart()
		return nil
	}
	qp.mu.Unlock()
	if to == engine.Error && qp.endIdle(engine.ErrAborted) {
		return nil
	}
	return refusedModify(qp, to, fmt.Errorf("from %v to %v: %w", qp.State(), to, ErrBadState))
}

// awaitLast waits for the last completions of a connection whose lower layer is closed already. A consumer that has
// polled some of them, or has seen StateError, need not wait for Done. It waits for no Write of the
// consumer's own connection, which may not return, or may be what calls Modify.
func awaitLast(qp *QP) {
	qp.mu.Lock()
	c, done := qp.conn.Load(), qp.done
	qp.mu.Unlock()
	if c == nil {
		return
	}
	if s := c.Status(); s.Phase >= driver.Closed && !s.Held {
		<-done
	}
}

// refusedModify returns the error of a transition, if the engine does not make it.
func refusedModify(qp *QP, to engine.State, err error) error {
	if err == nil {
		return nil
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if ended := qp.endedError(); ended != nil {
		return ended
	}
	return notThere(State(to), err)
}

// reset makes a QP without a connection ready for another. The caller holds qp.mu.
func (qp *QP) reset() {
	if qp.ended == nil {
		return
	}
	qp.ended, qp.machine = nil, qp.newMachine()
	qp.listener.forget(qp)
	if isClosed(qp.done) {
		qp.ends, qp.abandoned = nil, abandonedRecvs{}
		qp.sendCQ.revive(qp)
		qp.recvCQ.revive(qp)
	}
}

// endIdle ends a QP without a connection, and gives back what was posted, with a cause. It reports false if the QP
// has a connection, or has ended in another way than in order.
func (qp *QP) endIdle(cause error) bool {
	qp.mu.Lock()
	m := qp.machine
	if m == nil && qp.ended != nil && qp.ended.State == engine.Idle {
		m = qp.newMachine()
	}
	if m == nil {
		qp.mu.Unlock()
		return false
	}
	m.Abort(cause)
	e := &driver.End{State: m.State(), Cause: m.Cause(), Stats: m.Stats()}
	qp.addEnd(e)
	up, done, notices := upcalls{qp}, m.Completions(nil), m.Notices(nil)
	qp.unpolled.Add(done, qp.cfg.SRQ != nil)
	for len(done) > 0 { // all is given back before anybody sees the end
		n, _ := up.deliver(done, e.Cause, unlocked{})
		done = done[n:]
	}
	qp.machine, qp.ended, qp.why = nil, e, publicError(e.Cause)
	qp.mu.Unlock()
	for i := range notices {
		up.Noticed(&notices[i], e.Cause)
	}
	up.Settled(false)
	return true
}

// unlocked stands for a lock that the caller holds already.
type unlocked struct{}

func (unlocked) Lock()   {}
func (unlocked) Unlock() {}

// deniable is what QPConfig.Deny may name.
const deniable = RemoteWrite | RemoteRead | RemoteAtomic

func errDeny(a Access) error {
	return fmt.Errorf("%w: to deny %v; what can be denied is %v", ErrInvalid, a, deniable)
}

// ModifyStream replaces the attributes for the QP's next connection. It is the transition
// from Idle to Idle of the RDMA verbs, and also does what Modify(StateIdle) does (see
// draft-carrier-rddp-rnic-interop-00, section 6.2.5). The error wraps ErrVersion or
// ErrMarkersRequired for what the RNIC cannot do, ErrInvalid for an unknown value, and
// ErrBadState if the QP is in another state or a Dialer or Request is connecting it.
func (qp *QP) ModifyStream(a StreamAttr) error {
	if err := qp.made(); err != nil {
		return err
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	// CARRIER, section 6.2.5: "Only on transition from Idle to Idle, or Idle to RTS". [V04]
	if err := cmp.Or(qp.connectable(), a.check(qp.rnic.kind)); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	qp.reset()
	qp.attr = a
	return nil
}

// ModifyRTS puts a QP in StateIdle into RTS on a connection whose MPA startup the
// consumer has carried out itself, with an mpa.Initiator or mpa.Responder that is Done
// and whose Output was sent. n is the machine's Negotiated; where it leaves IRD and ORD to
// the ULP, the caller may fill in its own. attr, if it is not nil, replaces the QP's
// attributes, as ModifyStream does. From then on conn belongs to the QP, and has no
// deadline. If something was read ahead of conn, pass Buffered.
//
// After an error, conn still belongs to the caller and nothing has changed. The error
// wraps ErrVersion, ErrMarkersRequired or ErrBadState as with ModifyStream, also if the
// attributes or the RNIC's kind do not allow what was negotiated, ErrLimit for an IRD
// above the RNIC's, and ErrInvalid for a result that no startup can have.
//
// With a TerminateCode the connection is up only to tell the peer of it: the QP goes on to
// StateTerminate at once, and Err has the code.
func (qp *QP) ModifyRTS(conn net.Conn, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.made(); err != nil {
		return err
	}
	if conn == nil {
		return &OpError{Op: "modify QP", Err: errNoConnGiven}
	}
	if err := modifyRTS(qp, conn, n, attr); err != nil {
		return &OpError{Op: "modify QP", Addr: conn.RemoteAddr(), Err: err}
	}
	return nil
}

// modifyRTS connects a QP after the consumer has exchanged the startup frames itself.
//
// CARRIER, section 6.2: "Other implementations will create the QP after the MPA Request/Reply Messages. Thus both
// CreateQP and ModifyQP need to be changed to enable both approaches." [V04]
func modifyRTS(qp *QP, conn net.Conn, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.claimFor(); err != nil {
		return err
	}
	defer qp.unclaim()
	a, err := checkModify(qp, &n, attr)
	if err != nil {
		return err
	}
	if qp.rnic.crc == CRCAlways && !n.CRC {
		return fmt.Errorf("%w: no CRCs, and the RNIC's policy is to use them always", ErrInvalid)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	qp.rnic.resolve(&n)
	return newConnecting(qp, &Negotiated{Negotiated: n}, a, ticket{}, conn).overTCP(conn)
}

// checkModify returns the attributes of a connection that a consumer has negotiated, if the QP and
// the RNIC can have it.
func checkModify(qp *QP, n *mpa.Negotiated, attr *StreamAttr) (StreamAttr, error) {
	a := qp.stream()
	if attr != nil {
		a = *attr
	}
	if err := a.check(qp.rnic.kind); err != nil {
		return a, err
	}
	if err := qp.rnic.checkStartup(n); err != nil {
		return a, err
	}
	return a, a.checkNegotiated(qp.rnic.kind, n)
}

// checkStartup checks what a consumer says it has negotiated.
func (r *RNIC) checkStartup(n *mpa.Negotiated) error {
	switch {
	// CARRIER, section 5.1: "Between DDP and RDMAP, no mixing of versions is allowed." [N02]
	case n.DDPVersion != n.RDMAPVersion:
		return fmt.Errorf("%w: DDP version %d with RDMAP version %d", ErrVersion, n.DDPVersion, n.RDMAPVersion)
	// With an RDMAC RNIC both are "enable[d]", "regardless of the value of the M bit":
	// section 5.3. Start Keys leave it open. [N05]
	case n.DDPVersion == 0 && n.Dialect != mpa.DialectStartKey && !(n.MarkersSend && n.MarkersReceive && n.CRC):
		return fmt.Errorf("%w: version 0 is that of RDMAC RNICs, which always have markers and CRCs in both directions",
			ErrMarkersRequired)
	case n.Role != mpa.RoleInitiator && n.Role != mpa.RoleResponder:
		return fmt.Errorf("%w: %v", ErrInvalid, n.Role)
	case n.Role == mpa.RoleInitiator && !n.SendFirst:
		return fmt.Errorf("%w: an Initiator that may not send first", ErrInvalid)
	case n.IRD > mpa.NoNegotiation || n.ORD > mpa.NoNegotiation:
		return fmt.Errorf("%w: IRD %d and ORD %d", ErrInvalid, n.IRD, n.ORD)
	case n.Role == mpa.RoleInitiator && n.PeerToPeer && n.TerminateCode == 0 && bits.OnesCount8(uint8(n.RTR)) != 1:
		return fmt.Errorf("%w: an Initiator with %d RTR indications to send", ErrInvalid, bits.OnesCount8(uint8(n.RTR)))
	}
	return r.checkIRD(n.IRD)
}
