package mpa

import (
	"slices"
	"time"
)

// Limits bounds what a responder takes before its consumer has seen a Request.
type Limits struct {
	// Timeout bounds the wait for the whole Request. If zero,
	// [DefaultRequestTimeout]; if negative, there is none. [Q12]
	Timeout time.Duration
}

// Request is an MPA Request Frame as received, for the consumer to decide on.
type Request struct {
	Dialect  Dialect
	Revision uint8 // [Q07]
	// Markers and CRC are the initiator's M and C. [Q04] [F14]
	Markers, CRC bool
	// Enhanced says that there is enhanced data, and so IRD, ORD, PeerToPeer and
	// RTR. IRD and ORD are NoNegotiation otherwise. [E03]
	Enhanced   bool
	IRD, ORD   uint16
	PeerToPeer bool
	RTR        RTR
	// PrivateData is the ULP's. [Q08]
	PrivateData []byte
	// Frame is the whole frame, for whoever wants its other bits.
	Frame StartupFrame
}

// Responder is the machine of the end that waits for the MPA Request Frame: RFC
// 5044, Section 7.1.2, and RFC 6581, Section 9.3. Give Input what arrives until
// there is a Request, then Accept or Reject. It is not safe for concurrent use.
type Responder struct {
	in      intake
	limits  Limits
	request *Request
	neg     Negotiated
	done    bool
}

// NewResponder returns the machine for one connection.
func NewResponder(l Limits) *Responder {
	return &Responder{in: intake{role: RoleResponder}, limits: l}
}

// Start begins the wait for the Request.
//
// RFC 5044, Section 7.1.2: "When MPA is started in the Responder mode, the MPA
// implementation MUST wait until an MPA Request Frame is received and validated
// before entering Full MPA/DDP Operation." [Q09]
func (r *Responder) Start(now time.Time) {
	r.in.start(now, timeout(r.limits.Timeout, DefaultRequestTimeout))
}

// Input takes octets of the Request, in any split, and returns how many it took:
// never one beyond the Request, and none once there is one. What is left belongs
// to the first FPDU, or to the consumer after a rejection [Q13]. An error is a
// [*StartupError] and sticky: the connection is to be closed without an answer.
func (r *Responder) Input(now time.Time, b []byte) (n int, err error) {
	switch {
	case r.in.err != nil:
		return 0, r.in.err
	case !r.in.started():
		return 0, ErrState
	case r.request != nil:
		return 0, nil
	}
	n, err = r.in.take(b)
	if err == nil && r.in.whole() {
		r.request = newRequest(r.in.dialect, r.in.frame())
	}
	return n, err
}

func newRequest(d Dialect, f StartupFrame) *Request {
	// R "is set to zero, and not checked on reception in the MPA Request Frame",
	// and Res is "not checked on reception": RFC 5044, Section 7.1.1. [Q05] [Q06]
	q := &Request{
		Dialect: d, Revision: f.Rev(), Markers: f.M(), CRC: f.C(),
		IRD: NoNegotiation, ORD: NoNegotiation,
		PrivateData: f.ULPData(), Frame: f,
	}
	if e, ok := f.Enhanced(); ok {
		q.Enhanced, q.IRD, q.ORD, q.PeerToPeer, q.RTR = true, e.IRD, e.ORD, e.A, e.RTR()
	}
	return q
}

// Request returns the Request, or nil if it has not arrived yet.
func (r *Responder) Request() *Request { return r.request }

// Accept returns the accepting Reply, which is to leave in one write, and enters
// Full Operation with what Negotiated returns. The error is [ErrState], or wraps
// [ErrOffer]; Accept or Reject may be called again then.
func (r *Responder) Accept(o Offer) (reply []byte, err error) {
	if r.request == nil || r.done {
		return nil, ErrState
	}
	d := r.request.Dialect
	if err := o.check(d); err != nil {
		return nil, err
	}
	f := r.reply()
	f.M = o.Markers
	// The Reply's C says whether CRCs will be used, so a peer that looks at the
	// Reply alone comes to the same result. [F14]
	f.C = !o.NoCRC || r.request.CRC
	n := agree(RoleResponder, d, f, r.request.Frame)
	n.IRD, n.ORD = o.IRD, o.ORD
	if d.row().enhanced {
		e := r.enhance(&n, &o)
		f.PrivateData = AppendEnhanced(nil, &e)
	}
	f.PrivateData = slices.Concat(f.PrivateData, o.PrivateData)
	n.PrivateData = r.request.PrivateData
	r.neg, r.done = n, true
	return AppendStartup(nil, &f), nil
}

// enhance negotiates, and returns the enhanced data of the Reply.
func (r *Responder) enhance(n *Negotiated, o *Offer) (e Enhanced) {
	q := r.request
	n.Enhanced, n.PeerIRD, n.PeerORD = true, q.IRD, q.ORD
	n.IRD, e.IRD = responderIRD(o.IRD, o.maxIRD(), q.ORD)
	n.ORD, e.ORD = responderORD(o.ORD, q.IRD)
	// RFC 6581, Section 9.2: "The responder MUST set Control Flag A to 0 if Control
	// Flag A is 0 in the request. If Control Flag A is set to 0, then Control Flags
	// B, C, and D MUST also be set to 0." [E07]
	if !q.PeerToPeer {
		return e
	}
	// "If Control Flag A is 1 in the MPA Request message, then the responder MUST
	// set Control Flag A to 1 in the MPA reply message." [E08]
	n.PeerToPeer, n.OfferedRTR = true, q.RTR
	n.RTR = answerRTR(q.RTR, o.rtr(RoleResponder), o.AllRTR)
	// Section 9.1: "if the initiator ORD is 0 [...] and the responder supports use
	// of a zero-length RDMA Read RTR indication, then the responder IRD can be set
	// to 1." [E04]
	if n.RTR&RTRRead != 0 {
		n.IRD, e.IRD = max(n.IRD, 1), max(e.IRD, 1)
	}
	return e.peerToPeer(n.RTR)
}

// Reject returns the rejecting Reply, which is to leave in one write, with private
// data of the ULP. MPA is over then, and TCP stays open for the ULP to close it or
// to use it. ird and ord go to an enhanced initiator only; ord may be the depth
// that its IRD should have had. The error is as with Accept.
//
// RFC 5044, Section 7.1.2: "the implementation SHOULD return an MPA Reply Frame with
// the Rejected Connection bit set to '1'; the MPA Reply Frame MAY include
// ULP-supplied Private Data; the implementation MUST exit MPA, leaving the TCP
// connection open." [Q10] [E05]
func (r *Responder) Reject(privateData []byte, ird, ord uint16) (reply []byte, err error) {
	if r.request == nil || r.done {
		return nil, ErrState
	}
	if err := checkDepths(ird, ord); err != nil {
		return nil, err
	}
	if err := checkPrivateData(len(privateData), r.request.Dialect); err != nil {
		return nil, err
	}
	f := r.reply()
	f.R, f.C = true, r.request.CRC
	if f.S {
		e := r.rejection(ird, ord)
		f.PrivateData = AppendEnhanced(nil, &e)
	}
	f.PrivateData = slices.Concat(f.PrivateData, privateData)
	r.done = true
	return AppendStartup(nil, &f), nil
}

// rejection returns the enhanced data of a rejecting Reply. The rules for 0x3FFF
// and for A hold for every "reply message". [E06] [E08]
func (r *Responder) rejection(ird, ord uint16) Enhanced {
	e := Enhanced{IRD: ird, ORD: ord}
	if r.request.ORD == NoNegotiation {
		e.IRD = NoNegotiation
	}
	if r.request.IRD == NoNegotiation {
		e.ORD = NoNegotiation
	}
	if r.request.PeerToPeer {
		e = e.peerToPeer(answerRTR(r.request.RTR, rtrAll, false))
	}
	return e
}

// reply returns the fields that every Reply to the Request has.
//
// RFC 6581, Section 10: "If the responder receives an enhanced MPA message, it MUST
// respond with an enhanced MPA message", and with an unenhanced one to an
// unenhanced one. A revision above 2 is answered with ours; revision 2 without S is
// served as RFC 5044 with its revision repeated. [E02]
func (r *Responder) reply() StartupFields {
	row := r.request.Dialect.row()
	f := StartupFields{Key: KeyReply, S: row.enhanced, Rev: row.revision}
	if row.echo {
		f.Rev = r.request.Revision
	}
	return f
}

// Done reports whether the Request has been answered.
func (r *Responder) Done() bool { return r.done }

// Negotiated returns what was agreed on, once Accept has succeeded.
func (r *Responder) Negotiated() Negotiated { return r.neg }

// Deadline returns when HandleTimeout is to be called; the zero time is never, as
// when the Request has arrived: how long the consumer may take is its own business.
func (r *Responder) Deadline() time.Time { return r.in.deadline }

// HandleTimeout returns a [*StartupError] if the deadline has passed.
//
// RFC 5044, Section 7.1.2: "Implementations SHOULD put a timeout on waiting for the
// MPA Request Frame when started in Responder mode, to detect incorrect
// 'Responder/Responder' startups." [Q03] [Q12]
func (r *Responder) HandleTimeout(now time.Time) error {
	hint := "the peer stopped in the middle of its Request"
	if r.in.have == 0 {
		hint = "the peer may be a Responder too (Responder/Responder startup): one end must be started as Initiator"
	}
	return r.in.timedOut(now, hint)
}

// PeerClosed says that the connection ended, with io.EOF or a socket's error, and
// returns a [*StartupError] with code 1.
func (r *Responder) PeerClosed(cause error) error {
	switch {
	case r.in.err != nil:
		return r.in.err
	case r.request == nil:
		return r.in.cut(cause, "the initiator gave up, or its PD_Length is larger than its Private Data")
	case r.done:
		return r.in.lost(cause, "the peer closed the connection after the startup", "")
	}
	return r.in.lost(cause, "the peer closed the connection before its Request was answered",
		"the initiator's timeout is shorter than the time taken to decide")
}
