package rping

import (
	"log"
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
	// MaxSize is the longest buffer in octets, as in rdma-core. It is all that
	// a client can make a server allocate.
	MaxSize = 64<<10 - 1
)

// Config is what both roles need to know.
type Config struct {
	Verbose  bool // print the texts
	Validate bool // compare them
	Debug    bool // say on Err what happens

	// MPA is our side of the startup; with an IRD or ORD of 0, 1 is asked for,
	// as rdma-core does.
	MPA mpa.Offer
	// Preset, if there is one, has what the peer needs beside; Kind is the kind of
	// RNIC to be.
	Preset *iwarp.Preset
	Kind   mpa.Kind

	Out *log.Logger // the texts
	Err *log.Logger // everything else
}

// ClientConfig configures a client.
type ClientConfig struct {
	Config
	Size  int // octets, 1 to MaxSize; if zero, DefaultSize
	Count int // pings; if zero, until the context ends

	NoFallback bool                             // do not retry with revision 1
	Timeout    time.Duration                    // for the connection to come up; if zero, the Dialer's
	Wrap       func(net.Conn) (net.Conn, error) // of the TCP connection: see iwarp.Dialer
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

func (c *Config) debugf(format string, args ...any) {
	if c.Debug {
		c.Err.Printf(format, args...)
	}
}

// privateData prints what the peer's startup frame brought along.
func (c *Config) privateData(data []byte) {
	if len(data) > 0 && (c.Debug || c.Verbose) {
		c.Out.Printf("private data received: %q", data)
	}
}
