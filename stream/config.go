package stream

import (
	"cmp"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// A Config says what a connection takes. The zero value is usable.
type Config struct {
	// Ring is the memory that the peer writes into, in octets, and so bounds what it has written and nobody has read. If zero,
	// DefaultRing; it is rounded up to a multiple of 4096, and is 1 GiB at most.
	Ring int
	// Credits is how many pieces that are not read yet the peer may have sent, 16 to 32768. If zero,
	// DefaultCredits.
	Credits int
	// Maps is how many buffers the peer may announce by its Map, 0 to 32512. Above 128 it is rounded down: to 128, or
	// to a multiple of 256. Each takes 24 octets.
	Maps int
	// BigEndian has a Dialer tell the peer that integers are in big-endian order. It is for a peer with rdma-core on a big-endian host,
	// where the other order is an ErrByteOrder. A Listener takes the order of its peer.
	BigEndian bool
}

const (
	// DefaultRing is 2 MiB, so that a Write of 1 MiB is one piece.
	DefaultRing = 2 << 20
	// DefaultCredits is as many as rdma-core has.
	DefaultCredits = 384

	ringUnit    = 4096
	maxRing     = 1 << 30
	minCredits  = 16
	maxCredits  = 1 << 15
	maxMaps     = 32512
	tableSlots  = rsockets.MaxParts
	spareWords  = 32      // receives beyond the credits, for words that cost none
	sendDepth   = 1024    // entries of the Send Queue
	maxUnsent   = 256     // pieces that are posted and not complete: two entries each
	signalEvery = 64      // of pieces that nobody waits for, one completes; it divides maxUnsent
	inlineMost  = 1 << 10 // octets that are copied into the Send Queue
	maxPiece    = 1 << 20 // octets of one Write, and of a part of the ring where that has more than two: each costs messages both ways
	transferLen = 1 << 18 // octets of one step of ReadFrom
)

// fill puts numbers where there are none, and refuses those that cannot be.
func (c *Config) fill() error {
	c.Ring, c.Credits = cmp.Or(c.Ring, DefaultRing), cmp.Or(c.Credits, DefaultCredits)
	switch {
	case c.Ring < 0 || c.Ring > maxRing:
		return fmt.Errorf("%w: Config.Ring %d: 1 to %d", iwarp.ErrInvalid, c.Ring, maxRing)
	case c.Credits < minCredits || c.Credits > maxCredits:
		return fmt.Errorf("%w: Config.Credits %d: %d to %d", iwarp.ErrInvalid, c.Credits, minCredits, maxCredits)
	case c.Maps < 0 || c.Maps > maxMaps:
		return fmt.Errorf("%w: Config.Maps %d: 0 to %d", iwarp.ErrInvalid, c.Maps, maxMaps)
	}
	c.Ring = (c.Ring + ringUnit - 1) / ringUnit * ringUnit
	c.Maps = rsockets.MapsSaid(c.Maps)
	return nil
}
