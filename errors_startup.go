package iwarp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A fallbackAdviser is an error of a SegmentNetwork whose peer seems not to know RFC 6581.
type fallbackAdviser interface {
	error
	Fallback() (refused, plain string)
}

// A fallbackError says that a second attempt, without what RFC 6581 adds, has failed too.
type fallbackError struct {
	first, second error
}

// Error says how the peer refused revision 2, and what became of revision 1.
func (e *fallbackError) Error() string {
	return fmt.Sprintf("the responder %s; retried with %s: %s", refusal(e.first), plainer(e.first), text(e.second))
}

// Unwrap returns both causes, the later one first.
func (e *fallbackError) Unwrap() []error { return []error{e.second, e.first} }

// plainer says what a second attempt is made with.
func plainer(first error) string {
	if a, ok := errors.AsType[fallbackAdviser](first); ok {
		_, plain := a.Fallback()
		return plain
	}
	return "revision 1"
}

// refusal says how a responder refused a revision 2 Request.
func refusal(err error) string {
	var s *mpa.StartupError
	var r *mpa.RejectError
	var a fallbackAdviser
	switch {
	case errors.As(err, &a):
		refused, _ := a.Fallback()
		return refused
	case errors.As(err, &r):
		return "rejected a revision 2 Request with an unenhanced Reply"
	case errors.As(err, &s) && s.Failure == mpa.FailureMismatch:
		return "answered a revision 2 Request with an unenhanced Reply"
	}
	return "closed the connection on a revision 2 Request"
}

// A RejectError is a peer's refusal (an MPA Reply with R=1).
type RejectError struct {
	*mpa.RejectError
	// Conn is the TCP connection, and never nil. After Initiate, and after Dial with Dialer.KeepRejected, it is open
	// and belongs to whoever gets the error: use it as a byte stream, or close it. Otherwise it is closed: Dial has
	// closed it, or it may not stay open (Closed): the peer has closed it, where that is the rejection
	// (mpa.DialectStartKey), or its Reply is of a revision that is not served (RFC 5044, section 7.1.1). Over a
	// SegmentNetwork there is no connection to hand over, and Conn is a closed one. Reading and writing then fail
	// with net.ErrClosed.
	Conn net.Conn
}

// Error says who refused, and with what.
func (e *RejectError) Error() string {
	if isNoConn(e.Conn) {
		return "iwarp: " + e.text()
	}
	return e.RejectError.Error()
}

func (e *RejectError) text() string {
	if isNoConn(e.Conn) {
		return "the responder rejected the session" + e.particulars()
	}
	return e.RejectError.Error()
}

// shownBytes is how many bytes of private data the text shows, where they are no text themselves.
const shownBytes = 64

func (e *RejectError) particulars() string {
	s, part := fmt.Sprintf(" (%s of private data", wording.Bytes(len(e.PrivateData))), e.PrivateData
	if len(part) > shownBytes && bytes.ContainsFunc(part, func(r rune) bool { return r < ' ' || r > '~' }) {
		part = part[:shownBytes]
	}
	if len(part) > 0 {
		s += fmt.Sprintf(" %q", part)
	}
	if len(part) < len(e.PrivateData) {
		s += " ..."
	}
	if e.Enhanced {
		s += fmt.Sprintf(", IRD %v, ORD %v", e.PeerIRD, e.PeerORD)
	}
	return s + ")"
}

// Unwrap returns the MPA layer's error.
func (e *RejectError) Unwrap() error { return e.RejectError }

// A NegotiationError is a peer's Reply that accepts the connection on conditions that we cannot meet: it
// wants more inbound RDMA Reads than we allow, or supports no Ready-to-Receive indication that we have.
// The peer was told by a Terminate with code 6 or 7 of RFC 6581, section 8, and the connection is closed.
type NegotiationError struct {
	// TerminateError has the code that the peer was told.
	*TerminateError
	// Negotiated has the Reply: PeerIRD, PeerORD, AnsweredRTR and PrivateData, and what we offered.
	Negotiated mpa.Negotiated
}

// Error says what the peer wants, and what can be done.
func (e *NegotiationError) Error() string { return "iwarp: " + e.text() }

func (e *NegotiationError) text() string {
	n := &e.Negotiated
	s := e.TerminateError.text() + fmt.Sprintf(": the Reply has IRD %v, ORD %v, RTR %v and %s of private data; ",
		n.PeerIRD, n.PeerORD, n.AnsweredRTR, wording.Bytes(len(n.PrivateData)))
	switch {
	case n.TerminateCode == mpa.CodeInsufficientIRD:
		return s + fmt.Sprintf("our IRD would have to be %v: raise IRD or MaxIRD of the offer, and the RNIC's limit if it "+
			"has one", n.PeerORD)
	case n.AnsweredRTR == 0:
		return s + "the peer does not follow the peer-to-peer model (A=1) that we asked for: offer ClientServer"
	}
	return s + fmt.Sprintf("we offered RTR %v: add one of the peer's", n.OfferedRTR)
}

// Unwrap returns the *TerminateError.
func (e *NegotiationError) Unwrap() error { return e.TerminateError }

// A VerifyError is an accepting Reply that Dialer.Verify has refused. MPA is over: RFC 5044, section 7.1.2: "The ULP
// may close TCP or use the connection for other purposes." The peer has accepted, and expects FPDUs on it.
type VerifyError struct {
	// Err is what Verify returned.
	Err error
	// Conn is the connection. After Initiate, and after Dial with Dialer.KeepRejected, it is open and belongs to
	// whoever gets the error. Otherwise it is closed. Over a SegmentNetwork it is a closed one, and the session over.
	Conn net.Conn
}

// Error says that this side refused, and why.
func (e *VerifyError) Error() string { return "iwarp: " + e.text() }

func (e *VerifyError) text() string {
	if isNoConn(e.Conn) {
		return "Verify refused the peer's answer: " + text(e.Err)
	}
	return "Verify refused the peer's Reply: " + text(e.Err)
}

// Unwrap returns what Verify returned.
func (e *VerifyError) Unwrap() error { return e.Err }

// connOf returns the connection that an error of a startup hands over, or nil.
func connOf(err error) net.Conn {
	var rejected *RejectError
	var refused *VerifyError
	switch {
	case errors.As(err, &rejected):
		return rejected.Conn
	case errors.As(err, &refused):
		return refused.Conn
	}
	return nil
}

// A notMade is the error of a call on an object, or with one, that is nil or a zero value.
type notMade struct{ what, maker string }

func errNotMade(what, maker string) error { return &notMade{what, maker} }

func (e *notMade) Error() string { return "iwarp: " + e.text() }

func (e *notMade) text() string {
	return ErrInvalid.Error() + ": the " + e.what + " is nil or a zero value; " + e.maker
}

func (e *notMade) Unwrap() error { return ErrInvalid }

// Errors of calls with nil where a zero value would do.
var (
	errNoContext      = fmt.Errorf("%w: the context is nil; use context.Background()", ErrInvalid)
	errNoDialer       = fmt.Errorf("%w: the Dialer is nil; use new(Dialer)", ErrInvalid)
	errNoListenConfig = fmt.Errorf("%w: the ListenConfig is nil; use new(ListenConfig)", ErrInvalid)
	errNoListener     = fmt.Errorf("%w: the net.Listener is nil; net.Listen makes one", ErrInvalid)
)

// contextError says why no call can begin with a context.
func contextError(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return deadline.ContextError(ctx)
}

// given refuses a call of a Dialer that lacks something.
func (d *Dialer) given(ctx context.Context) error {
	switch {
	case d == nil:
		return errNoDialer
	case ctx == nil:
		return errNoContext
	}
	return nil
}

// given refuses a call of a ListenConfig that lacks something.
func (cfg *ListenConfig) given(ctx context.Context) error {
	switch {
	case cfg == nil:
		return errNoListenConfig
	case ctx == nil:
		return errNoContext
	}
	return nil
}

func (r *RNIC) made() error {
	if r == nil || r.table == nil {
		return errNotMade("RNIC", "NewRNIC makes one")
	}
	return nil
}

func (pd *PD) made() error {
	if pd == nil || pd.rnic == nil {
		return errNotMade("PD", "RNIC.AllocPD makes one")
	}
	return nil
}

func (m *MR) made() error {
	if m == nil || m.region == nil {
		return errNotMade("MR", "PD.Register and PD.AllocMR make one")
	}
	return nil
}

func (w *MW) made() error {
	if w == nil || w.window == nil {
		return errNotMade("MW", "PD.AllocMW makes one")
	}
	return nil
}

func (cq *CQ) made() error {
	if cq == nil || cq.rnic == nil {
		return errNotMade("CQ", "RNIC.CreateCQ makes one")
	}
	return nil
}

func (s *SRQ) made() error {
	if s == nil || s.pd == nil {
		return errNotMade("SRQ", "PD.CreateSRQ makes one")
	}
	return nil
}

func (qp *QP) made() error {
	if qp == nil || qp.rnic == nil {
		return errNotMade("QP", "Dial, Request.Accept and PD.CreateQP make one")
	}
	return nil
}

func (l *Listener) made() error {
	if l == nil || l.rnic == nil {
		return errNotMade("Listener", "Listen makes one")
	}
	return nil
}

func (r *Request) made() error {
	if r == nil || r.rnic == nil {
		return errNotMade("Request", "Listener.Accept and ListenConfig.Respond make one")
	}
	return nil
}
