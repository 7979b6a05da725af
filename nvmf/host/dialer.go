package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/deadline"
)

// Bounds and defaults of a Dialer.
const (
	// DefaultPort is that of targets and of discovery controllers.
	DefaultPort = capsule.Port

	// MaxDepth bounds Dialer.Depth: a command's number has 12 bits, and the rest of its id tells commands with the same
	// number apart.
	MaxDepth = 1 << tagBits

	defaultQueues, defaultDepth = 2, 128

	defaultKeepAlive = 15 * time.Second
	defaultTimeout   = 30 * time.Second
	defaultDelay     = time.Second
	defaultPatience  = time.Minute
)

// A Dialer connects to controllers. The zero value is usable.
type Dialer struct {
	// RDMA says how QPs are made and connected. This package sets its MPA.PrivateData, its Prepare, and the queues and
	// CQs of its QP. If its PD is nil, each queue has an RNIC of its own. If it has neither a Preset nor an MPA.RTR,
	// connections are of the client-server model, as Linux's are; if MPA.IRD and MPA.ORD are zero, the IRD is 128: a
	// controller fetches what is written by RDMA Reads.
	RDMA iwarp.Dialer
	// HostID tells the target who we are: two Dialers with the same HostID are the same host, and when a host connects
	// once more, the target may end its earlier connections. If zero, it is random.
	HostID [16]byte
	// HostNQN is our name. If it is empty it is made from HostID.
	HostNQN string
	// Queues is how many I/O queues are asked for, each a connection; the controller may grant fewer. If zero, 2.
	Queues int
	// Depth is how many entries an I/O queue has, 2 to MaxDepth; the controller may have fewer. One command less can be
	// under way. If zero, 128.
	Depth int
	// KeepAlive is how long the target keeps the controller without hearing from us, and how long we wait for its
	// answer. We send a Keep Alive after half of it. If zero, 15 s; if negative, there is none.
	KeepAlive time.Duration
	// Timeout bounds the answer to a command, and the time that it takes to bring a controller up. If zero, 30 s; it
	// cannot be without a bound.
	Timeout time.Duration
	// Patience is for how long a Controller that has lost its connections tries to connect again, and Delay is the
	// pause between attempts. If zero, they are 1 min and 1 s. With a negative Patience there is no attempt.
	Patience, Delay time.Duration
	// KeepKeys has memory invalidated at this end, and not by the target.
	KeepKeys bool
	// Lost, if it is set, is called with the reason when a Controller has lost its connections and begins to connect
	// again, and with nil when it has new ones. The Controller waits until Lost returns. Connections are lost when they
	// end, when the target does not answer in time, and when it does what no target may do.
	Lost func(cause error)
	// Logger is told of connections that are lost and made again. If nil, nothing is logged.
	Logger *slog.Logger
}

// resolved returns the Dialer with its defaults in place.
func (d *Dialer) resolved() (Dialer, error) {
	r := *d
	r.Queues = cmp.Or(r.Queues, defaultQueues)
	r.Depth = cmp.Or(r.Depth, defaultDepth)
	r.KeepAlive = max(cmp.Or(r.KeepAlive, defaultKeepAlive), 0)
	r.Timeout = cmp.Or(r.Timeout, defaultTimeout)
	r.Delay = cmp.Or(r.Delay, defaultDelay)
	r.Patience = cmp.Or(r.Patience, defaultPatience)
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	if r.Lost == nil {
		r.Lost = func(error) {}
	}
	switch {
	case r.Queues < 1 || r.Queues > 0xFFFF:
		return r, fmt.Errorf("%w: Dialer.Queues of %d: there are 1 to 65535", iwarp.ErrInvalid, r.Queues)
	case r.Depth < 2 || r.Depth > MaxDepth:
		return r, fmt.Errorf("%w: Dialer.Depth of %d: there are 2 to %d", iwarp.ErrInvalid, r.Depth, MaxDepth)
	case r.Timeout < 0 || r.Delay < 0:
		return r, fmt.Errorf("%w: a negative Dialer.Timeout or Dialer.Delay", iwarp.ErrInvalid)
	case r.KeepAlive.Milliseconds() > 1<<32-1:
		return r, fmt.Errorf("%w: a Dialer.KeepAlive of more than 2^32 milliseconds", iwarp.ErrInvalid)
	}
	return r, r.name()
}

// name gives the host an identifier and a name, if it has none.
func (d *Dialer) name() error {
	if d.HostID == [16]byte{} {
		_, _ = rand.Read(d.HostID[:])
		d.HostID[6] = d.HostID[6]&0x0F | 0x40 // RFC 9562, section 5.4: version 4
		d.HostID[8] = d.HostID[8]&0x3F | 0x80
	}
	if d.HostNQN == "" {
		i := d.HostID
		d.HostNQN = fmt.Sprintf("nqn.2014-08.org.nvmexpress:uuid:%x-%x-%x-%x-%x",
			i[:4], i[4:6], i[6:8], i[8:10], i[10:])
	}
	return checkNQN(d.HostNQN)
}

func checkNQN(nqn string) error {
	if nqn == "" || len(nqn) > capsule.MaxNQN {
		return fmt.Errorf("%w: the name (NQN) %q: it has 1 to %d bytes", iwarp.ErrInvalid, nqn, capsule.MaxNQN)
	}
	return nil
}

// A subsystem is what a Dialer is to connect to.
type subsystem struct{ network, address, nqn string }

// Dial connects to the controller of a subsystem. network is one of iwarp.Dialer.Dial's, and address has a port; nqn is
// the subsystem's name. ctx bounds the call, in addition to Dialer.Timeout. If the connection is lost after it has come
// up, and before the controller has, that is tried again as it is for a Controller, which Dialer.Patience bounds.
// Errors are a *RejectError or another of iwarp's, a *StatusError for a command that the controller refused, a
// *ProtocolError or a *TimeoutError.
func (d *Dialer) Dial(ctx context.Context, network, address, nqn string) (*Controller, error) {
	r, err := d.resolved()
	if err != nil {
		return nil, err
	}
	if err := checkNQN(nqn); err != nil {
		return nil, err
	}
	c := newController(r, subsystem{network, address, nqn})
	s, err := r.establish(ctx, c.to)
	if _, cut := errors.AsType[*cutError](err); cut && r.Patience > 0 {
		if s, err = c.again(ctx, err); err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", deadline.ContextError(ctx), err)
		}
	}
	if err != nil {
		c.cancel()
		return nil, err
	}
	c.start(s)
	return c, nil
}

// Dial connects as a Dialer without settings does.
func Dial(ctx context.Context, network, address, nqn string) (*Controller, error) {
	return new(Dialer).Dial(ctx, network, address, nqn)
}
