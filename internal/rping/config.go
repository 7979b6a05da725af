package rping

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// Defaults and bounds.
const (
	// DefaultPort is rdma-core's.
	DefaultPort = 7174
	// DefaultSize is what rdma-core's program has (its manual says 100). It
	// matters: a server of rdma-core's cannot serve a client whose buffer is
	// larger than its own.
	DefaultSize = 64
	// MaxSize is the longest buffer in bytes, as in rdma-core. It is all that
	// a client can make a server allocate.
	MaxSize = 64<<10 - 1
)

// ErrSize is wrapped by what CheckSize returns.
var ErrSize = errors.New("rping: -S: invalid size")

// CheckSize returns an error for a number of bytes that no ping can have.
func CheckSize(n int) error {
	if n < 1 || n > MaxSize {
		return fmt.Errorf("%w %d (valid range is 1 to %d)", ErrSize, n, MaxSize)
	}
	return nil
}

// Config is what both roles need to know.
type Config struct {
	Validate bool // compare the texts with what they must be

	// MPA is our side of the startup; with an IRD or ORD of 0, 1 is asked for, as
	// rdma-core does.
	MPA mpa.Offer
	// Preset, if there is one, has what else the peer needs; Kind is the kind of RNIC
	// to be.
	Preset *iwarp.Preset
	Kind   mpa.Kind

	// Watch, if it is set, is told what happens. A server of many clients calls it from
	// several goroutines, though never from two at a time.
	Watch func(Event)

	// Idle is how long a connection may stand still; if zero, for ever.
	Idle time.Duration

	// closeTime is how long an orderly close may take, whatever the peer does meanwhile.
	// If zero, 5 s.
	closeTime time.Duration
}

// ClientConfig configures a client.
type ClientConfig struct {
	Config
	Size  int // bytes, 1 to MaxSize; if zero, DefaultSize
	Count int // pings; if zero, until the context ends
	// MayClose has a server that closes the connection end pings without a Count in order, as rdma-core's client has it.
	MayClose bool
	// Interval is the pause between two pings.
	Interval time.Duration

	NoFallback bool                             // do not retry with revision 1
	Timeout    time.Duration                    // for the connection to come up; if zero, the Dialer's
	Wrap       func(net.Conn) (net.Conn, error) // of the TCP connection: see iwarp.Dialer
	Source     net.Addr                         // of the connection; if nil, the system chooses

	// Dial, if it is set, connects in place of the Dialer's own Dial over TCP.
	Dial func(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error)
}

// ServerConfig configures a server.
type ServerConfig struct {
	Config
	Persistent bool    // serve until the context ends, many clients at a time
	Reject     *string // reject all requests, with this private data
}

func (c *Config) offer() mpa.Offer {
	o := c.MPA
	if o.IRD == 0 {
		o.IRD = 1
	}
	if o.ORD == 0 {
		o.ORD = 1
	}
	return o
}

// rnic makes the RNIC of a role.
func (c *Config) rnic() *iwarp.RNIC { return iwarp.NewRNIC(iwarp.RNICConfig{Kind: c.Kind}) }

// report tells the watcher.
func (c *Config) report(e Event) {
	if c.Watch != nil {
		c.Watch(e)
	}
}

// privateData tells what private data the peer's startup frame brought along.
func (c *Config) privateData(data []byte) {
	if len(data) > 0 {
		c.report(PrivateData(data))
	}
}
