package mpa

import (
	"fmt"
	"slices"
	"time"
)

// Initiator is the machine of the end that sends the MPA Request Frame: RFC 5044,
// Section 7.1.2, and RFC 6581, Section 9.3. Send what Start returns, give Input
// what arrives, and look at Done. It is not safe for concurrent use.
type Initiator struct {
	in       intake
	offer    Offer
	dialect  Dialect // of our Request
	request  StartupFields
	neg      Negotiated
	rejected *RejectError
	done     bool
}

// NewInitiator returns the machine for one connection. The error wraps [ErrOffer].
func NewInitiator(o Offer) (*Initiator, error) {
	d, err := o.dialect()
	if err != nil {
		return nil, err
	}
	if err := o.check(d); err != nil {
		return nil, err
	}
	o.PrivateData = slices.Clone(o.PrivateData)
	i := &Initiator{in: intake{role: RoleInitiator}, offer: o, dialect: d}
	i.request = StartupFields{
		Key: KeyRequest, M: o.Markers, C: !o.NoCRC, S: d.row().enhanced, Rev: d.row().revision,
		PrivateData: i.privateData(),
	}
	return i, nil
}

// privateData returns the Private Data of the Request: behind the enhanced data, if
// there is such.
func (i *Initiator) privateData() []byte {
	if !i.dialect.row().enhanced {
		return i.offer.PrivateData
	}
	e := Enhanced{IRD: i.offer.IRD, ORD: i.offer.ORD}
	// RFC 6581, Section 9.2: "The initiator MUST set Control Flag A to 1 for the
	// peer-to-peer model. The initiator MUST set each Control Flag B, C, and D to 1
	// for each of the options it supports, if Control Flag A is set to 1." "If
	// Control Flag A is set to 0, then Control Flags B, C, and D MUST also be set
	// to 0." [E07]
	if !i.offer.ClientServer {
		e = e.peerToPeer(i.offer.rtr(RoleInitiator))
	}
	return append(AppendEnhanced(nil, &e), i.offer.PrivateData...)
}

// Start begins the startup and returns the Request, which is to leave in one write.
//
// RFC 5044, Section 7.1.2: "When MPA is started in the Initiator mode, the MPA
// implementation MUST send a valid MPA Request Frame." [Q09]
func (i *Initiator) Start(now time.Time) []byte {
	i.in.start(now, timeout(i.offer.Timeout, DefaultReplyTimeout))
	return AppendStartup(nil, &i.request)
}

// Dialect returns the dialect of the Request.
func (i *Initiator) Dialect() Dialect { return i.dialect }

// Input takes octets of the Reply, in any split, and returns how many it took:
// never one beyond the Reply, and none once it is Done. What is left belongs to
// the first FPDU, or to the consumer after a rejection [Q13]. An error is a
// [*StartupError] and sticky: the connection is to be closed.
func (i *Initiator) Input(now time.Time, b []byte) (n int, err error) {
	switch {
	case i.in.err != nil:
		return 0, i.in.err
	case !i.in.started():
		return 0, ErrState
	case i.done:
		return 0, nil
	}
	n, err = i.in.take(b)
	if err != nil || !i.in.whole() {
		return n, err
	}
	return n, i.reply(i.in.frame())
}

// reply judges the whole Reply.
func (i *Initiator) reply(f StartupFrame) error {
	if f.R() {
		i.reject(f)
		return nil
	}
	if i.in.dialect != i.dialect {
		i.in.err = i.mismatch(f)
		return i.in.err
	}
	i.neg = agree(RoleInitiator, i.dialect, i.request, f)
	i.neg.PrivateData = f.ULPData()
	i.neg.IRD, i.neg.ORD = i.offer.IRD, i.offer.ORD
	if e, ok := f.Enhanced(); ok {
		i.enhance(e)
	}
	i.done = true
	return nil
}

// mismatch is the error of an accepting Reply of another dialect than the Request.
//
// RFC 6581, Section 10: "If the responder receives an enhanced MPA message, it MUST
// respond with an enhanced MPA message", and "If the responder receives an
// unenhanced MPA message ('S' is set to 0), it MUST respond with an unenhanced MPA
// message." Going on is no choice: a responder that does not know the enhanced data
// has given it to its consumer as the head of the private data, and IRD, ORD and
// the first sender would stay open. [E02]
func (i *Initiator) mismatch(f StartupFrame) *StartupError {
	err := &Error{Code: CodeStartupFrame, Offset: startupFlags, Field: "S"}
	e := i.in.fail(FailureMismatch, err)
	if !i.dialect.row().enhanced {
		err.Reason = "enhanced Reply to an unenhanced Request"
		err.Hint = "the responder must answer without enhanced data; try a revision 2 Request"
		return e
	}
	e.Fallback = true
	err.Reason = fmt.Sprintf("unenhanced Reply, revision %d, to an enhanced Request", f.Rev())
	err.Hint = "the responder does not know RFC 6581; retry with revision 1 on a new connection"
	return e
}

// reject leaves MPA on a Reply with R=1.
//
// RFC 6581, Section 9.1: "The initiator MUST pass the responder provided IRD and
// ORD to the ULP for both MPA Accept and Reject messages." [Q05] [Q10] [E03]
func (i *Initiator) reject(f StartupFrame) {
	e, enhanced := f.Enhanced()
	i.rejected = &RejectError{
		Dialect: i.in.dialect, Revision: f.Rev(), PrivateData: f.ULPData(),
		Enhanced: enhanced, PeerIRD: e.IRD, PeerORD: e.ORD,
		Fallback: i.dialect.row().enhanced && !enhanced,
		Hint:     i.rejectHint(f),
	}
	i.done = true
}

// rejectHint guesses at a rejection for which the responder gives no reason.
func (i *Initiator) rejectHint(f StartupFrame) string {
	if i.request.M && len(f.ULPData()) == 0 {
		return "the Request asked for markers (M=1), which some responders cannot send, Linux's siw for one: do without"
	}
	return ""
}

// enhance puts the Reply's enhanced data into effect.
func (i *Initiator) enhance(e Enhanced) {
	n, able := &i.neg, i.offer.rtr(RoleInitiator)
	n.Enhanced, n.PeerIRD, n.PeerORD = true, e.IRD, e.ORD
	n.ORD = initiatorORD(i.offer.ORD, e.IRD)
	ird, enough := initiatorIRD(i.offer.IRD, i.offer.maxIRD(), e.ORD)
	n.IRD = ird
	if !i.offer.ClientServer {
		n.OfferedRTR = able
	}
	// A=1 in the answer to A=0 breaks the rule that the responder follows. It waits
	// for an RTR indication then, and we can send one, so we do: it serves both
	// models. A=0 in the answer to A=1 leaves our consumers without the model they
	// asked for, and no RTR indication that the responder supports (B, C and D do
	// not count): code 7, the "failure to negotiate a mutually compatible
	// connection model or RTR option" of RFC 6581, Section 9.2. [E08] [E10]
	n.PeerToPeer = e.A || !i.offer.ClientServer
	if n.PeerToPeer {
		n.RTR = chooseRTR(able, e.RTR(), e.IRD)
	}
	switch {
	case n.PeerToPeer && n.RTR == 0:
		n.TerminateCode = CodeNoMatchingRTR // [E10]
	case !enough:
		n.TerminateCode = CodeInsufficientIRD // [E05]
	}
}

// Done reports whether the Reply has been received: see Rejected first, then
// Negotiated.
func (i *Initiator) Done() bool { return i.done }

// Negotiated returns what was agreed on, once Done and not Rejected.
func (i *Initiator) Negotiated() Negotiated { return i.neg }

// Rejected returns the rejection if the Reply has R=1, and nil otherwise.
func (i *Initiator) Rejected() *RejectError { return i.rejected }

// Deadline returns when HandleTimeout is to be called; the zero time is never.
func (i *Initiator) Deadline() time.Time { return i.in.deadline }

// HandleTimeout returns a [*StartupError] if the deadline has passed. [Q12]
func (i *Initiator) HandleTimeout(now time.Time) error {
	return i.in.timedOut(now, "the responder has not decided yet, or does not speak MPA on this port")
}

// PeerClosed says that the connection ended, with io.EOF or a socket's error, and
// returns a [*StartupError] with code 1. It advises a Fallback if the peer closed
// it on a revision 2 Request without a word.
//
// RFC 6581, Section 10: "an unenhanced responder treats the enhanced request as
// incorrectly formatted and closes the TCP connection. [...] the initiator MAY
// attempt to establish an RDMA connection using the unenhanced MPA protocol". [E13]
func (i *Initiator) PeerClosed(cause error) error {
	switch {
	case i.in.err != nil:
		return i.in.err
	case i.done:
		return i.in.lost(cause, "the peer closed the connection after the startup", "")
	case !i.dialect.row().enhanced || i.in.have > 0:
		return i.in.cut(cause, "the responder refused the Request, or is not an MPA responder")
	}
	e := i.in.cut(cause, "responder closed the connection on a revision 2 request; retry with revision 1 on a new connection")
	e.Fallback = true
	return e
}
