package iwarp

import (
	"fmt"
	"math/bits"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
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
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.modify(engine.State(to)); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	qp.pushUnlocking()
	return nil
}

// notThere is the error of a transition that the engine does not make, and says what to do.
func notThere(to State, err error) error {
	switch {
	case to > StateClosed:
		return fmt.Errorf("%w: there is no state %d", ErrInvalid, to)
	case to == StateClosed:
		return fmt.Errorf("%w: the state Closed is that of a connection that has ended in order: Modify to Closing, or Close", ErrInvalid)
	case to == StateIdle:
		return fmt.Errorf("%w: end the connection first, by Modify to Closing or Error, and wait for Done", err)
	case to == StateRTS:
		return fmt.Errorf("%w: a Dialer, a Request and ModifyRTS lead there", err)
	}
	return fmt.Errorf("%w: there is no connection to end", err)
}

func (qp *QP) modify(to engine.State) error {
	if qp.destroyed {
		return qp.ended()
	}
	if to == engine.Idle && qp.closingLLP {
		return qp.stillClosing()
	}
	if err := qp.eng.Modify(time.Now(), to); err != nil {
		if ended := qp.ended(); ended != nil {
			return ended
		}
		return notThere(State(to), err)
	}
	if to == engine.Idle {
		qp.closing = false
	}
	if to == engine.Idle && qp.closedLLP {
		qp.conn, qp.link, qp.ends, qp.closedLLP, qp.orphans = nil, nil, ends{}, false, nil
		qp.sendCQ.revive(qp)
		qp.recvCQ.revive(qp)
	}
	return nil
}

// Deny replaces QPConfig.Deny, for all that comes from the peer from then on. It may be called in any state. The error wraps
// ErrInvalid if a names more than RemoteWrite, RemoteRead and RemoteAtomic.
func (qp *QP) Deny(a Access) error {
	if a&^deniable != 0 {
		return &OpError{Op: "modify QP", Err: errDeny(a)}
	}
	qp.mu.Lock()
	defer qp.unlock()
	qp.cfg.Deny = a
	qp.eng.Deny(memory.Access(a))
	return nil
}

// SetPrefix has each OpSend of the QP's next connections begin with 8 octets of the consumer's that do not go into the memory of the
// receive: SendWR.Prefix has those to send, and WC.Prefix those that came. On the wire they are the first octets of the message, so that both ends
// have to set this, by an agreement of their own. No length counts them. The error wraps ErrBadState in other states than StateIdle.
func (qp *QP) SetPrefix(on bool) error {
	qp.mu.Lock()
	defer qp.unlock()
	if qp.eng.State() != engine.Idle {
		return &OpError{Op: "modify QP", Err: ErrBadState}
	}
	qp.eng.SetPrefix(on)
	return nil
}

// deniable is what Deny may name.
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
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.modifyStream(a); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	return nil
}

// modifyStream holds section 6.2.5 of CARRIER: "Only on transition from Idle to Idle, or
// Idle to RTS". [V04]
func (qp *QP) modifyStream(a StreamAttr) error {
	if err := qp.connectable(); err != nil {
		return err
	}
	if err := a.check(qp.rnic.kind); err != nil {
		return err
	}
	if err := qp.modify(engine.Idle); err != nil {
		return err
	}
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
	if conn == nil {
		return &OpError{Op: "modify QP", Err: errNoConnGiven}
	}
	if err := qp.modifyRTS(conn, n, attr); err != nil {
		return &OpError{Op: "modify QP", Addr: conn.RemoteAddr(), Err: err}
	}
	return nil
}

// modifyRTS is the second of two ways to create a QP: CARRIER, section 6.2: "Other
// implementations will create the QP after the MPA Request/Reply Messages. Thus both
// CreateQP and ModifyQP need to be changed to enable both approaches." [V04]
func (qp *QP) modifyRTS(conn net.Conn, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	a, err := qp.checkModify(&n, attr)
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
	return qp.start(qp.newConn(conn), &Negotiated{Negotiated: n}, a, lease{})
}

// checkModify returns the attributes of a connection that a consumer has negotiated, if the QP and
// the RNIC can have it.
func (qp *QP) checkModify(n *mpa.Negotiated, attr *StreamAttr) (StreamAttr, error) {
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
	// "Between DDP and RDMAP, no mixing of versions is allowed": CARRIER, section 5.1.
	// [N02]
	case n.DDPVersion != n.RDMAPVersion:
		return fmt.Errorf("%w: DDP version %d with RDMAP version %d", ErrVersion, n.DDPVersion, n.RDMAPVersion)
	// With an RDMAC RNIC both are "enable[d]", "regardless of the value of the M bit":
	// section 5.3. Start Keys leave it open. [N05]
	case n.DDPVersion == 0 && n.Dialect != mpa.DialectStartKey && !(n.MarkersSend && n.MarkersReceive && n.CRC):
		return fmt.Errorf("%w: version 0 is that of RDMAC RNICs, which always have markers and CRCs in both directions", ErrMarkersRequired)
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
