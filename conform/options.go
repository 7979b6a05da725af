package conform

import (
	"cmp"
	"context"
	"errors"
	"net"
	"regexp"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// Default times of a Session.
const (
	DefaultTimeout     = 2 * time.Second        // for what the peer must do
	DefaultQuiet       = 200 * time.Millisecond // for what it must not do
	DefaultSlowTimeout = 70 * time.Second       // for the peer's own timeouts
)

// A Peer is the peer under test as a Session gets at it.
type Peer interface {
	// Connect returns a fresh TCP connection: it connects to a Responder; an
	// Initiator it has begin anew, or waits until it does.
	Connect(context.Context) (net.Conn, error)
	// Again returns the next connection that an Initiator opens by itself, behind
	// one that failed.
	Again(context.Context) (net.Conn, error)
	// Release says that the connections of a case are closed and no other is
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
	// Peer is the peer under test.
	Peer Peer
	// Filter selects cases by their ID; nil selects all.
	Filter *regexp.Regexp
	// Unsafe runs such cases as may harm the peer's system, and Slow those that
	// wait for the peer's own timeouts.
	Unsafe, Slow bool
	// Timeout bounds the wait for what the peer must do; if zero, DefaultTimeout.
	// Quiet is for how long it must not do what it must not; if zero,
	// DefaultQuiet. SlowTimeout bounds the wait for its own timeouts; if zero,
	// DefaultSlowTimeout.
	Timeout, Quiet, SlowTimeout time.Duration
}

func (o Options) resolved() (Options, error) {
	o.Dialect = cmp.Or(o.Dialect, mpa.DialectRFC6581)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Quiet = cmp.Or(o.Quiet, DefaultQuiet)
	o.SlowTimeout = cmp.Or(o.SlowTimeout, DefaultSlowTimeout)
	switch {
	case o.Peer == nil:
		return o, errors.New("conform: no peer")
	case o.Role != mpa.RoleInitiator && o.Role != mpa.RoleResponder:
		return o, errors.New("conform: the peer's role is not set: Initiator or Responder")
	case o.Timeout < 0 || o.Quiet < 0 || o.SlowTimeout < 0:
		return o, errors.New("conform: a time is negative")
	}
	return o, nil
}

// Selected returns the cases whose IDs the filter takes, in the order in which they
// are run: those of the peer's role and of the dialect, or of all where they are
// zero.
func (o Options) Selected() []Case {
	var cases []Case
	for _, c := range Cases() {
		fits := (o.Role == 0 || c.Role == o.Role) && (o.Dialect == 0 || c.speaks(o.Dialect))
		if fits && (o.Filter == nil || o.Filter.MatchString(c.ID)) {
			cases = append(cases, c)
		}
	}
	return cases
}

// held returns why a case is not run; empty if it is.
func (o *Options) held(c *Case) string {
	switch {
	case o.App == AppNone && c.operation():
		return "beyond the startup, and the peer's application is not known"
	case c.App != AppNone && c.App != o.App:
		return "the peer's application has to be " + c.App.String()
	case c.Unsafe != "" && !o.Unsafe:
		return "unsafe, not asked for: " + c.Unsafe
	case c.Slow && !o.Slow:
		return "slow, not asked for: it waits for the peer's own timeouts"
	}
	return ""
}
