package iwarp

import (
	"fmt"
	"math/bits"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// Modify carries out a transition of the RDMA verbs (section 6.2) that the
// consumer may ask for: RTS to Closing (without draining: work under way makes
// it a bad close), RTS to Terminate, RTS or Idle to Error, Error to Idle. To RTS goes
// a Dialer, a Request, or ModifyRTS.
//
// To Idle is also how a QP whose connection has ended is made ready for another:
// before that, and before the next Connect, it takes no work, in StateIdle too,
// so that nobody waits for a connection that is over.
func (qp *QP) Modify(to State) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if err := qp.modify(engine.State(to)); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	qp.push()
	return nil
}

func (qp *QP) modify(to engine.State) error {
	if qp.destroyed {
		return ErrClosed
	}
	if err := qp.eng.Modify(time.Now(), to); err != nil {
		return err
	}
	if to == engine.Idle && qp.closedLLP {
		qp.conn, qp.closedLLP = nil, false
	}
	return nil
}

// ModifyStream replaces the attributes for the QP's next connection: the transition
// from Idle to Idle of the RDMA verbs, which does what Modify(StateIdle) does too. The
// error wraps ErrVersion or ErrMarkersRequired for what the RNIC cannot do, ErrInvalid
// for a value that means nothing, and ErrBadState in another state, or while a Dialer
// or a Request connects the QP.
//
// draft-carrier-rddp-rnic-interop-00, section 6.2.5: "Only on transition from Idle to
// Idle, or Idle to RTS". [V04]
func (qp *QP) ModifyStream(a StreamAttr) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if err := qp.modifyStream(a); err != nil {
		return &OpError{Op: "modify QP", Err: err}
	}
	return nil
}

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
// consumer has carried out itself, with an mpa.Initiator or mpa.Responder that is
// Done; Output must be sent. n is what it says was negotiated, with an IRD and ORD
// of its own where they are NoNegotiation. attr, if it is not nil, replaces the QP's
// attributes, as ModifyStream does. From then on conn belongs to the QP, and has no
// deadline. For what was read ahead of it there is Buffered.
//
// After an error, conn is still the caller's and nothing has changed. It wraps
// ErrVersion, ErrMarkersRequired or ErrBadState as with ModifyStream, also where the
// negotiated is not what the attributes or the RNIC's kind allow, ErrLimit for an IRD
// above the RNIC's, and ErrInvalid for what no startup can have come to.
//
// With a TerminateCode the connection is up only to tell the peer of it: the QP goes
// on to StateTerminate at once, and Err has the code.
//
// draft-carrier-rddp-rnic-interop-00, section 6.2: "Other implementations will create
// the QP after the MPA Request/Reply Messages. Thus both CreateQP and ModifyQP need to
// be changed to enable both approaches." [V04]
func (qp *QP) ModifyRTS(conn net.Conn, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.modifyRTS(conn, n, attr); err != nil {
		return &OpError{Op: "modify QP", Addr: conn.RemoteAddr(), Err: err}
	}
	return nil
}

func (qp *QP) modifyRTS(conn net.Conn, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	a := qp.stream()
	if attr != nil {
		a = *attr
	}
	if err := a.check(qp.rnic.kind); err != nil {
		return err
	}
	if err := qp.rnic.checkStartup(&n); err != nil {
		return err
	}
	if err := a.checkNegotiated(qp.rnic.kind, &n); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	qp.rnic.resolve(&n)
	return qp.start(tcp.New(conn), Negotiated{Negotiated: n}, a)
}

// checkStartup judges what a consumer says it has negotiated.
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
	case r.limits.IRD > 0 && int(n.IRD) > r.limits.IRD && n.IRD != mpa.NoNegotiation:
		return &LimitError{Resource: "IRD of a connection", Limit: int64(r.limits.IRD), Wanted: int64(n.IRD)}
	}
	return nil
}
