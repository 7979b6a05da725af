package capture

import (
	"cmp"
	"time"
)

// Defaults of Config.
const (
	DefaultMaxConnections   = 16384
	DefaultMaxBuffered      = 16 << 20
	DefaultMaxBufferedTotal = 256 << 20
	DefaultGapPackets       = 32
	DefaultGapTime          = time.Second
)

// Config are the limits of a Tracker. A field that is zero or less has its default.
type Config struct {
	// MaxConnections is how many connections are known at once. That includes those
	// which are over, of which a quarter of it are known at most: a packet that comes late
	// must find them. One of these is forgotten first for a new one, and then the one that was quiet for longest: what
	// comes of that later is skipped.
	MaxConnections int
	// MaxBuffered is how many bytes of a direction may be held back by a hole, and
	// MaxBufferedTotal those of all directions. It can be more by one segment.
	MaxBuffered, MaxBufferedTotal int
	// GapPackets and GapTime are how long acknowledged bytes may still turn up, since
	// a capture can have an acknowledgment before what it acknowledges: so many packets
	// of the connection, or so much time between its packets, whichever is sooner.
	// Waiting can last twice as long.
	GapPackets int
	GapTime    time.Duration
	// UDPPorts are ports whose packets are SCTP in UDP, whatever their checksums say.
	UDPPorts []uint16
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	c.MaxConnections = cmp.Or(max(c.MaxConnections, 0), DefaultMaxConnections)
	c.MaxBuffered = cmp.Or(max(c.MaxBuffered, 0), DefaultMaxBuffered)
	c.MaxBufferedTotal = cmp.Or(max(c.MaxBufferedTotal, 0), DefaultMaxBufferedTotal)
	c.GapPackets = cmp.Or(max(c.GapPackets, 0), DefaultGapPackets)
	c.GapTime = cmp.Or(max(c.GapTime, 0), DefaultGapTime)
	return c
}
