package mpa

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Initiator is the machine of the end that sends the first frame: the MPA Request
// Frame of RFC 5044, section 7.1.2, and RFC 6581, section 9.3, or the Start Key,
// where CULLEY calls it Passive. Send what Start returns, give Input what arrives,
// send what Output returns then, and look at Done. It is not safe for concurrent use.
type Initiator struct {
	in       intake
	offer    Offer
	dialect  Dialect // of our first frame
	request  StartupFields
	out      []byte
	neg      Negotiated
	answer   []byte // private data of the responder's message [K07]
	rejected *RejectError
	done     bool
}

// NewInitiator returns the machine for one connection. The error wraps [ErrOffer].
func NewInitiator(o Offer) (*Initiator, error) {
	o, err := o.Resolved()
	if err != nil {
		return nil, err
	}
	o.PrivateData = slices.Clone(o.PrivateData)
	row := o.Dialect.row()
	i := &Initiator{offer: o, dialect: o.Dialect}
	i.request = StartupFields{
		Key: KeyRequest, M: o.Markers || o.Kind.always(o.Dialect), C: !o.NoCRC ||
			o.Kind.always(o.Dialect), S: row.sBit, Rev: row.revision,
		PrivateData: i.privateData(),
	}
	i.in = intake{role: RoleInitiator, kind: o.Kind, served: i.acceptsDialect, asked: row.revision}
	return i, nil
}

// acceptsDialect says which dialects a Reply may be of. An unfit one is refused by
// mismatch, which knows what to do about it.
func (i *Initiator) acceptsDialect(d Dialect) bool {
	switch {
	case i.dialect == DialectRevision0, d == DialectRtr:
		return d == i.dialect
	}
	return i.offer.Kind.speaks(d)
}

// privateData returns the Private Data of the Request: after the enhanced data, if
// there is such.
func (i *Initiator) privateData() []byte {
	if !i.dialect.row().enhanced {
		return i.offer.PrivateData
	}
	e := i.offer.Enhanced()
	return append(AppendEnhanced(nil, &e), i.offer.PrivateData...)
}

// Start begins the startup and returns the first frame, which is to leave in one
// write.
//
// RFC 5044, section 7.1.2: "When MPA is started in the Initiator mode, the MPA
// implementation MUST send a valid MPA Request Frame." CULLEY, section 8.1:
// "When MPA is started in the "Passive" mode, the MPA implementation MUST send a
// valid "Start Key"."
func (i *Initiator) Start(now time.Time) []byte {
	i.in.arm(now, timeout(i.offer.Timeout, DefaultReplyTimeout))
	switch {
	case i.dialect != DialectStartKey:
		i.in.expectFrame(awaitReply)
		return AppendStartup(nil, &i.request)
	case i.offer.Messages:
		i.in.expectFrame(awaitMessage)
		return AppendPrivateDataMessage(nil, i.offer.PrivateData, -1)
	}
	i.in.expectFrame(awaitStartKey)
	return i.startKey()
}

func (i *Initiator) startKey() []byte {
	return AppendStartKey(nil, &StartKeyFields{M: i.request.M, C: i.request.C})
}

// Output returns what is to be sent now, in one write, and nil if there is nothing:
// the Rtr frame, or the Start Key after a private data message. It is returned
// once; nothing else may be sent before it.
func (i *Initiator) Output() []byte {
	b := i.out
	i.out = nil
	return b
}

// Dialect returns the dialect of the first frame.
func (i *Initiator) Dialect() Dialect { return i.dialect }

// Input takes bytes of the frame that the machine waits for, in any split, and returns
// how many it took: never one beyond the startup frames, and none once it is Done. What is
// left belongs to the first FPDU (RFC 5044, section 7.1.2), or to the consumer after a rejection. An error is a
// [*StartupError] and sticky. The caller closes the connection then.
func (i *Initiator) Input(now time.Time, b []byte) (n int, err error) {
	switch {
	case i.in.err != nil:
		return 0, i.in.err
	case !i.in.started():
		return 0, ErrState
	}
	for !i.done && n < len(b) {
		k, err := i.in.consume(b[n:])
		n += k
		if err == nil && i.in.whole() {
			err = i.handleFrame()
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// handleFrame goes on with a whole frame.
func (i *Initiator) handleFrame() error {
	switch i.in.arrived {
	case arrivedMessage:
		// CULLEY, section 13.3.1: the "Initiating Consumer" gets the response, and
		// "would enable MPA/DDP/RDMA in passive mode". [K07]
		i.answer = PrivateDataMessage(i.in.buf).PrivateData()
		i.out = i.startKey()
		i.in.expectFrame(awaitStartKey)
		return nil
	case arrivedStartKey:
		i.agree(DialectStartKey, StartKey(i.in.buf).terms())
		i.neg.PrivateData = i.answer
		return nil
	}
	return i.reply(i.in.frame())
}

// agree enters Full Operation.
func (i *Initiator) agree(d Dialect, peer terms) {
	i.neg = agree(RoleInitiator, d, i.request.terms(), peer)
	i.neg.IRD, i.neg.ORD = i.offer.IRD, i.offer.ORD
	i.done, i.in.deadline = true, time.Time{}
}

// reply judges the whole Reply.
func (i *Initiator) reply(f StartupFrame) error {
	d := i.in.dialect
	if f.R() {
		i.reject(f)
		return nil
	}
	if !i.dialect.answeredBy(d) {
		i.in.err, i.in.deadline = i.mismatch(f), time.Time{}
		return i.in.err
	}
	if err := i.withoutMarkersError(d, f); err != nil {
		i.in.err, i.in.deadline = err, time.Time{}
		return err
	}
	i.agree(d, f.terms())
	i.neg.PrivateData = f.PrivateData()
	switch {
	case d == DialectRFC6581:
		e, _ := f.Enhanced()
		i.neg.PrivateData = f.ULPData()
		i.offer.Conclude(&i.neg, e)
	case d == DialectRtr:
		i.out = i.rtrFrame(f)
	}
	return nil
}

// withoutMarkersError returns the error of an accepting Reply of revision 0 that does without markers
// or CRCs. Both ends would use them all the same, so its sender has to be out of step.
//
// CARRIER, section 5.3.2: "the ULP or other supporting entity for the RDMAC RNIC will
// create an MPA Reply Frame with Rev equal to zero and the M bit set to one"; 5.3.1: "with
// revision set to zero and the M and C bits set to one". [N03] [N05]
func (i *Initiator) withoutMarkersError(d Dialect, f StartupFrame) *StartupError {
	field := "M"
	switch {
	case !d.row().always || f.M() && f.C():
		return nil
	case f.M():
		field = "C"
	}
	return i.in.fail(FailureMismatch, &Error{
		Code: CodeStartupFrame, Offset: startupFlags, Field: field,
		Reason: "a Reply of revision 0 with M=" + strconv.Itoa(wording.Bit(f.M())) + " C=" +
			strconv.Itoa(wording.Bit(f.C())),
		Hint: "RNICs of revision 0 always use markers and CRCs and say so: the responder must set M=1 and C=1, or answer in revision 1",
	})
}

// rtrFrame returns the Rtr frame that a Reply with S=1 waits for.
//
// The 2007 proposal: S is "Unused by Rtr frame. That is set to 0 in Rtr frame", "No
// private data format is defined for Rtr", and "Rtr frame adhere to C bit as
// specified in Rep frame". [T02] [T05]
func (i *Initiator) rtrFrame(reply StartupFrame) []byte {
	return AppendStartup(nil, &StartupFields{Key: KeyRtr, M: i.request.M, C: reply.C(), Rev: i.request.Rev})
}

// mismatch is the error of an accepting Reply of another dialect than the Request.
//
// RFC 6581, section 10: "If the responder receives an enhanced MPA message, it MUST
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
	err.Reason = fmt.Sprintf("unenhanced Reply, revision %d, to an enhanced Request of revision %d",
		f.Rev(), i.in.asked)
	err.Hint = "the responder does not know RFC 6581; retry with revision 1 on a new connection"
	if f.Rev() == revision0 {
		err.Hint = "the responder is an RDMAC RNIC; retry with revision 1 on a new connection, which it answers with revision 0 too"
	}
	return e
}

// reject leaves MPA on a Reply with R=1.
//
// RFC 6581, section 9.1: "The initiator MUST pass the responder provided IRD and
// ORD to the ULP for both MPA Accept and Reject messages." [Q05] [Q10] [E03]
func (i *Initiator) reject(f StartupFrame) {
	e, enhanced := f.Enhanced()
	i.in.deadline = time.Time{}
	i.rejected = &RejectError{
		Dialect: i.in.dialect, Revision: f.Rev(), PrivateData: f.ULPData(),
		Enhanced: enhanced, PeerIRD: e.IRD, PeerORD: e.ORD,
		Fallback: i.dialect.row().enhanced && !enhanced,
		// RFC 5044, section 7.1.1: "If the MPA receiver cannot interoperate with the received version, then
		// it MUST close the connection and report an error locally." Section 7.1.2, which leaves TCP open, is
		// about a Reply that is properly formatted: what another revision means by its fields, nobody knows. [Q07]
		Closed: i.in.unserved,
		Hint:   i.rejectHint(f),
	}
	i.done = true
}

// rejectHint guesses at a rejection for which the responder gives no reason.
func (i *Initiator) rejectHint(f StartupFrame) string {
	switch {
	case len(f.ULPData()) > 0:
		return "" // that is the reason
	case i.offer.Kind.always(i.dialect):
		return "RDMAC RNICs always use markers, which some responders cannot send, Linux's siw for one"
	case f.Rev() == revision0:
		return "" // of an RDMAC RNIC, which has markers and CRCs
	case i.request.M:
		return "the Request asked for markers (M=1), which some responders cannot send, Linux's siw for one: do without"
	case i.request.C && !f.C():
		return "the Request asked for CRCs (C=1) and the rejection has C=0: the responder may have been told to refuse them, as Linux's siw can be (mpa_crc_strict): do without"
	}
	return ""
}

// Done reports whether the startup is over. The caller sends what Output returns, and
// then looks at Rejected first, and at Negotiated if that is nil.
func (i *Initiator) Done() bool { return i.done }

// Negotiated returns what was agreed on, once Done and not Rejected.
func (i *Initiator) Negotiated() Negotiated { return i.neg }

// Rejected returns the rejection if the Reply has R=1, and nil otherwise.
func (i *Initiator) Rejected() *RejectError { return i.rejected }

// Deadline returns when to call HandleTimeout; the zero time means never.
func (i *Initiator) Deadline() time.Time { return i.in.deadline }

// HandleTimeout returns a [*StartupError] if the deadline has passed: RFC 5044, section 7.1.2.
func (i *Initiator) HandleTimeout(now time.Time) error {
	return i.in.timedOut(now, i.noReplyHint())
}

// GiveUp ends the wait before the deadline, as the caller has no more time: cause says
// why, such as context.DeadlineExceeded. It returns a [*StartupError] that says what was
// awaited, and wraps cause.
func (i *Initiator) GiveUp(now time.Time, cause error) error {
	return i.in.cancelError(now, cause, i.noReplyHint())
}

// PeerClosed says that the connection ended, with io.EOF or a socket's error, and
// returns a [*StartupError] with code 1, or a [*RejectError] where closing is the
// way to reject. It advises a Fallback if the peer closed the connection on a
// revision 2 Request without a word.
//
// RFC 6581, section 10: "an unenhanced responder treats the enhanced request as
// incorrectly formatted and closes the TCP connection. [...] the initiator MAY
// attempt to establish an RDMA connection using the unenhanced MPA protocol".
func (i *Initiator) PeerClosed(cause error) error {
	silent := len(i.in.buf) == 0
	switch {
	case i.rejected != nil && i.rejected.Closed:
		return i.rejected
	case i.in.err != nil:
		return i.in.err
	case i.done:
		return i.in.connectionError(cause, "the peer closed the connection after the startup", i.goneAfterHint())
	case i.in.await == awaitStartKey && i.offer.Messages && silent:
		// CULLEY, section 13.3.1: "To reject the connection request, the Responding
		// Consumer would send any ULP supplied "Private Data Response" (with reason
		// for rejection) and close the TCP connection." [K07]
		i.rejected = &RejectError{Dialect: i.dialect, PrivateData: i.answer, Closed: true}
		i.done, i.in.deadline = true, time.Time{}
		return i.rejected
	case !silent || !i.dialect.row().enhanced:
		return i.in.truncatedError(cause, i.refusedHint())
	}
	e := i.in.truncatedError(cause, "a responder that does not know RFC 6581 ends an enhanced startup this way; retry with revision 1 on a new connection")
	e.Fallback = true
	return e
}
