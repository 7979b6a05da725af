package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Default times of a run.
const (
	DefaultTimeout     = 2 * time.Second        // for what the peer must do
	DefaultQuiet       = 200 * time.Millisecond // for what it must not do
	DefaultSlowTimeout = 70 * time.Second       // for the peer's own timeouts
)

// A Peer is how a run reaches the peer under test.
type Peer interface {
	// Connect returns a new TCP connection: it connects to a Responder, and has an
	// Initiator begin again or waits until it does.
	Connect(context.Context) (net.Conn, error)
	// Again returns the next connection that an Initiator opens by itself, after one
	// that failed.
	Again(context.Context) (net.Conn, error)
	// Release says that the connections of a case are closed and that no other is
	// expected.
	Release()
}

// Options say what is tested, and how.
type Options struct {
	// Role is that of the peer under test.
	Role mpa.Role
	// Dialect is how connections are started, and whose startup is tested. If
	// zero, mpa.DialectRFC6581.
	Dialect mpa.Dialect
	// App is the peer's application.
	App App
	// Streaming is what the applications say to each other before MPA is started. If
	// nil, it is started at once.
	Streaming *Streaming
	// Peer is the peer under test.
	Peer Peer
	// SCTP is the host:port, of UDP and of SCTP, of a listener of DDP over SCTP in UDP (RFC
	// 6951). If it is set, that is the peer under test, in the Responder's role, and the
	// cases are those of SCTP.
	SCTP string
	// SCTPListener is where a peer in the Initiator's role connects, over SCTP in UDP.
	SCTPListener *SCTPListener
	// Record, if it is set, gets what is sent and received on the connections of the run, which are TCP's and SCTP's.
	// Of a TCP in user space, with addresses of its own, it is better to record the packets below:
	// [capture.Writer.Packet].
	Record *capture.Writer
	// Cases are the cases to run. If nil, those of the function Cases.
	Cases []Case
	// Filter selects cases by their ID; nil selects all.
	Filter *regexp.Regexp
	// Unsafe selects the cases that may harm the peer's system, and Slow those that
	// wait for the peer's own timeouts.
	Unsafe, Slow bool
	// Timeout bounds the wait for what the peer must do; if zero, DefaultTimeout.
	// Quiet is for how long a case watches that the peer does not do what it must
	// not; if zero, DefaultQuiet. The path's round trip, as far as it is known, is added to it: see
	// [Summary.RoundTrip]. SlowTimeout bounds the wait for the peer's own
	// timeouts; if zero, DefaultSlowTimeout.
	Timeout, Quiet, SlowTimeout time.Duration

	roundTrip time.Duration // that the peer's answer before the first case took
	longest   time.Duration // round trip that any case has met
}

// noPeer says what to set.
const noPeer = "there is no peer to test: set Options.Peer for one over TCP, Options.SCTP or Options.SCTPListener for one over SCTP"

func (o Options) resolved() (Options, error) {
	o.Dialect = cmp.Or(o.Dialect, mpa.DialectRFC6581)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Quiet = cmp.Or(o.Quiet, DefaultQuiet)
	o.SlowTimeout = cmp.Or(o.SlowTimeout, DefaultSlowTimeout)
	switch {
	case o.SCTP != "" && o.Role == mpa.RoleInitiator:
		return o, errors.New("conform: the peer at an address of SCTP is the passive end")
	case o.SCTPListener != nil && o.Role == mpa.RoleResponder:
		return o, errors.New("conform: who comes to an SCTPListener is the active end")
	case o.Peer == nil && !o.overSCTP():
		return o, errors.New("conform: " + noPeer)
	case o.Role != mpa.RoleInitiator && o.Role != mpa.RoleResponder:
		return o, errors.New("conform: the peer's role is not set: Initiator or Responder")
	case o.Timeout < 0 || o.Quiet < 0 || o.SlowTimeout < 0:
		return o, errors.New("conform: a time is negative")
	}
	return o, o.checkOwn()
}

// overSCTP reports whether the peer under test is one over SCTP.
func (o *Options) overSCTP() bool { return o.SCTP != "" || o.SCTPListener != nil }

// Selected returns the cases whose IDs the filter takes, in the order in which they
// are run: those of the peer's role and of the dialect, or of all roles and dialects
// where these are zero. The error is a [*NoCasesError] if there is none.
func (o Options) Selected() ([]Case, error) {
	var cases []Case
	others := 0
	from := o.Cases
	if from == nil {
		from = Cases()
	}
	for _, c := range from {
		c.Role = cmp.Or(c.Role, o.Role)
		switch {
		case o.Filter != nil && !o.Filter.MatchString(c.ID):
		case o.Role != 0 && (c.Role != o.Role || c.sctp != o.overSCTP()), o.Dialect != 0 && !c.speaks(o.Dialect):
			others++
		default:
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return nil, &NoCasesError{o.Filter, o.Role, o.Dialect, others}
	}
	return cases, nil
}

// A NoCasesError says that a filter takes no case.
type NoCasesError struct {
	Filter  *regexp.Regexp
	Role    mpa.Role    // of the peer; zero: any
	Dialect mpa.Dialect // zero: any
	Others  int         // cases of other roles and dialects that the filter takes
}

// Error says what does not match, and what the user can do.
func (e *NoCasesError) Error() string {
	if e.Others == 0 {
		return fmt.Sprintf("no case has an ID that matches %q: --list shows all IDs", e.Filter)
	}
	return fmt.Sprintf("%s with an ID that matches %q, but none for this role and dialect of the peer (%v, %v)",
		wording.Count(e.Others, "case"), e.Filter, e.Role, e.Dialect)
}

// held returns why a case is not run; empty if it is.
func (o *Options) held(c *Case) string {
	switch {
	case c.sctp && !o.overSCTP():
		return "over SCTP, and the peer is one over TCP"
	case o.App == AppNone && c.Play == nil && c.operation():
		return "beyond the startup, and the peer's application is not known"
	case c.Delayed && o.Streaming == nil:
		return "the peer's application has to start MPA after streaming data, and what it says then has to be given"
	case o.App == AppReject && c.App != AppReject:
		return "the peer's application rejects every Request"
	case c.App != AppNone && c.App != o.App:
		return "the peer's application has to be " + c.App.String()
	case c.Unsafe != "" && !o.Unsafe:
		return "unsafe, not asked for: " + c.Unsafe
	case c.Slow && !o.Slow:
		return "slow, not asked for: it waits for the peer's own timeouts"
	}
	return ""
}
