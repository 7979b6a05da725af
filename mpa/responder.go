package mpa

import (
	"fmt"
	"slices"
	"time"
)

// Responder is the machine of the end that waits for the first frame: the MPA
// Request Frame of RFC 5044, section 7.1.2, and RFC 6581, section 9.3, or the Start
// Key, where CULLEY calls it Active. Give Input what arrives until there is a
// Request, then Accept or Reject; in some dialects another frame follows. It is not
// safe for concurrent use.
type Responder struct {
	in       intake
	cfg      ResponderConfig
	request  *Request
	answer   Answer // accepted
	out      []byte
	neg      Negotiated
	answered bool
	done     bool
}

// NewResponder returns the machine for one connection.
func NewResponder(c ResponderConfig) *Responder {
	c.Kind = c.Kind.or(KindPermissive)
	r := &Responder{cfg: c}
	r.in = intake{role: RoleResponder, kind: c.Kind, served: r.cfg.serves, messages: c.Messages &&
		c.serves(DialectStartKey)}
	return r
}

// Start begins the wait for the Request.
//
// RFC 5044, section 7.1.2: "When MPA is started in the Responder mode, the MPA
// implementation MUST wait until an MPA Request Frame is received and validated
// before entering Full MPA/DDP Operation." CULLEY, section 8.1: "When MPA is
// started in the "Active" mode, the MPA implementation MUST wait until a "Start
// Key" is received."
func (r *Responder) Start(now time.Time) {
	r.in.expectFrame(awaitRequest)
	r.in.arm(now, r.timeout())
}

func (r *Responder) timeout() time.Duration { return timeout(r.cfg.Timeout, DefaultRequestTimeout) }

// Input takes bytes of the frame that the machine waits for, in any split, and returns
// how many it took: never one beyond the startup frames, and none between a Request and
// its answer. What is left belongs to the first FPDU (RFC 5044, section 7.1.2), or to the consumer after a
// rejection. An error is a [*StartupError] and sticky. The caller sends what Output
// returns then, and closes the connection.
func (r *Responder) Input(now time.Time, b []byte) (n int, err error) {
	switch {
	case r.in.err != nil:
		return 0, r.in.err
	case !r.in.started():
		return 0, ErrState
	case !r.in.pending():
		return 0, nil
	}
	n, err = r.in.consume(b)
	if err != nil {
		r.answerUnserved()
	} else if r.in.whole() {
		r.handleFrame()
	}
	return n, err
}

// answerUnserved answers a revision 0 Request that is not served.
//
// CARRIER, section 5.2.1: "Because the Non-permissive IETF RNIC cannot dynamically
// downgrade the version number it uses for DDP and RDMAP, it would send an MPA Reply
// Frame with the Rev field equal to one and then gracefully close the connection." [N04]
func (r *Responder) answerUnserved() {
	if r.in.refusal != nil {
		r.out = AppendStartup(nil, &StartupFields{Key: KeyReply, M: r.cfg.Markers, C: !r.cfg.NoCRC, Rev: revision1})
	}
}

// Output returns what is to be sent now, in one write, and nil if there is nothing:
// our Start Key after a private data message, or a last Reply before the
// connection is closed on an error. It is returned once.
func (r *Responder) Output() []byte {
	b := r.out
	r.out = nil
	return b
}

// handleFrame goes on with a whole frame.
func (r *Responder) handleFrame() {
	r.in.deadline = time.Time{}
	switch {
	case r.request == nil:
		r.request = r.in.request()
	case r.in.arrived == arrivedStartKey: // after our private data message
		r.out = r.startKey(StartKey(r.in.buf))
	default: // the Rtr frame
		r.done = true
	}
}

// Request returns the Request, or nil if it has not arrived yet.
func (r *Responder) Request() *Request { return r.request }

// Accept returns the accepting Reply, which the caller sends in one write. If the machine
// is Done then, Full Operation begins, with what Negotiated returns; otherwise it waits
// for another frame. The error is [ErrState], or what PeerClosed has returned, or wraps
// [ErrOffer]: after that one the caller may call Accept or Reject again.
//
// An Answer.Kind of KindRDMAC answers for an RDMAC RNIC, whatever the Request's
// revision, and one of KindNonPermissive refuses revision 0: CARRIER, figures 2 to 4.
func (r *Responder) Accept(now time.Time, a Answer) (reply []byte, err error) {
	if err := r.answerable(); err != nil {
		return nil, err
	}
	d, err := r.accepted(a.Kind)
	if err != nil {
		return nil, err
	}
	if err := r.check(a, d); err != nil {
		return nil, err
	}
	r.answer, r.answered = a, true
	if d == DialectStartKey {
		return r.acceptStartKey(now), nil
	}
	return r.acceptFrame(now, d), nil
}

// check reports values of an answer that have no place in a frame of the dialect.
func (r *Responder) check(a Answer, d Dialect) error {
	o := a.Offer()
	o.Messages = r.in.arrived == arrivedMessage
	return o.check(d)
}

// answerable returns what keeps the Request from being answered now.
func (r *Responder) answerable() error {
	switch {
	case r.request == nil || r.answered:
		return ErrState
	case r.in.err != nil:
		return r.in.err
	}
	return nil
}

// accepted returns the dialect of the answer.
func (r *Responder) accepted(kind Kind) (Dialect, error) {
	d := r.request.Dialect
	kind = kind.or(r.cfg.Kind)
	if kind == KindRDMAC && d != DialectStartKey {
		d = DialectRevision0
	}
	if !kind.speaks(d) || !r.cfg.Kind.speaks(d) {
		return 0, fmt.Errorf("%w: the Request is of %v, which takes DDP and RDMAP version %d: not of an RNIC of kind %v", ErrOffer, d, d.row().version, kind)
	}
	return d, nil
}

// acceptStartKey answers a Start Key with ours, and a private data message with
// ours, which the Start Keys follow.
//
// CULLEY, section 8.1: "After the received "Start Key" is validated, the MPA
// implementation MUST send a valid "Start Key"." [K02]
func (r *Responder) acceptStartKey(now time.Time) []byte {
	if r.in.arrived == arrivedStartKey {
		return r.startKey(StartKey(r.in.buf))
	}
	r.await(now, awaitStartKey)
	return AppendPrivateDataMessage(nil, r.answer.PrivateData, -1)
}

func (r *Responder) startKey(peer StartKey) []byte {
	always := r.answer.Kind.or(r.cfg.Kind).always(DialectStartKey)
	f := StartKeyFields{M: r.answer.Markers || always, C: !r.answer.NoCRC || peer.C() || always}
	n := agree(RoleResponder, DialectStartKey, terms{revision0, f.M, f.C}, peer.terms())
	n.IRD, n.ORD, n.PrivateData = r.answer.IRD, r.answer.ORD, r.request.PrivateData
	r.neg, r.done = n, true
	return AppendStartKey(nil, &f)
}

func (r *Responder) await(now time.Time, a awaited) {
	r.in.expectFrame(a)
	r.in.arm(now, r.timeout())
}

// acceptFrame answers a Request Frame.
func (r *Responder) acceptFrame(now time.Time, d Dialect) []byte {
	a, row := &r.answer, d.row()
	f := r.reply(d)
	f.M = a.Markers || row.always
	// The Reply's C says whether CRCs will be used, so a peer that looks at the
	// Reply alone comes to the same result. [F14]
	f.C = !a.NoCRC || r.request.CRC || row.always
	n := agree(RoleResponder, d, f.terms(), r.request.Frame.terms())
	n.IRD, n.ORD = a.IRD, a.ORD
	if row.enhanced {
		e := a.Conclude(&n, r.request)
		f.PrivateData = AppendEnhanced(nil, &e)
	}
	f.PrivateData = slices.Concat(f.PrivateData, a.PrivateData)
	n.PrivateData = r.request.PrivateData
	r.neg, r.done = n, true
	if d == DialectRtr {
		// The 2007 proposal: S=1 in the Reply says that the Responder supports the
		// Rtr frame "and is waiting for it". [T01]
		r.done, r.in.settled = false, f.C
		r.await(now, awaitRtr)
	}
	return AppendStartup(nil, &f)
}

// reply returns the fields that every Reply of a dialect has.
//
// RFC 6581, section 10: "If the responder receives an enhanced MPA message, it MUST
// respond with an enhanced MPA message", and with an unenhanced one to an
// unenhanced one. A revision above 2 is answered with ours; revision 2 without S is
// served as RFC 5044 with its revision repeated. [E02]
func (r *Responder) reply(d Dialect) StartupFields {
	row := d.row()
	f := StartupFields{Key: KeyReply, S: row.sBit, Rev: row.revision}
	if row.echo {
		f.Rev = r.request.Revision
	}
	return f
}

// Done reports whether the Request has been answered, and the frame has arrived that
// follows the answer in some dialects.
func (r *Responder) Done() bool { return r.done }

// Negotiated returns what was agreed on, once Accept has succeeded and it is Done.
func (r *Responder) Negotiated() Negotiated { return r.neg }

// Deadline returns when to call HandleTimeout; the zero time means never. There is none
// between a Request and its answer: how long the consumer may take is its own business.
func (r *Responder) Deadline() time.Time { return r.in.deadline }

// HandleTimeout returns a [*StartupError] if the deadline has passed.
//
// RFC 5044, section 7.1.2: "Implementations SHOULD put a timeout on waiting for the
// MPA Request Frame when started in Responder mode, to detect incorrect
// 'Responder/Responder' startups."
func (r *Responder) HandleTimeout(now time.Time) error {
	return r.in.timedOut(now, r.noRequestHint())
}

// GiveUp ends the wait before the deadline, as the caller has no more time: cause says
// why, such as context.DeadlineExceeded. It returns a [*StartupError] that says what was
// awaited, and wraps cause.
func (r *Responder) GiveUp(now time.Time, cause error) error {
	return r.in.cancelError(now, cause, r.noRequestHint())
}

// PeerClosed says that the connection ended, with io.EOF or a socket's error, and
// returns a [*StartupError] with code 1.
func (r *Responder) PeerClosed(cause error) error {
	switch {
	case r.in.err != nil:
		return r.in.err
	case r.request == nil:
		return r.in.truncatedError(cause, r.goneHint())
	case r.done:
		return r.in.connectionError(cause, "the peer closed the connection after the startup", r.goneAfterHint())
	case r.answered:
		return r.in.truncatedError(cause, "the initiator did not want the connection after our answer")
	}
	return r.in.connectionError(cause, "the peer closed the connection before its Request was answered",
		"the initiator's timeout is shorter than the time taken to decide")
}
