package stream

import (
	"cmp"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

// A Config says how much memory and how many receives a connection has. The zero value is usable.
type Config struct {
	// Ring is the size in bytes of the memory that the peer writes into. It bounds what the peer has written and nobody
	// has read. Zero is DefaultRing. It is rounded up to a multiple of 4096, and is 1 GiB at most.
	Ring int
	// Credits is how many pieces the peer may have sent that were not read yet, 16 to 32768. Zero is DefaultCredits.
	Credits int
	// Maps is how many buffers the peer may announce by its Map, 0 to 32512. Above 128 it is rounded down: to 128, or
	// to a multiple of 256. Each takes 24 bytes.
	Maps int
	// BigEndian has a Dialer tell the peer that integers are big-endian. It is for a peer that is rdma-core on a
	// big-endian host: any other value is ErrByteOrder there. A Listener takes the byte order of its peer.
	BigEndian bool
}

const (
	// DefaultRing is 2 MiB, so that a Write of 1 MiB is one piece.
	DefaultRing = 2 << 20
	// DefaultCredits is the default of rdma-core.
	DefaultCredits = 384

	ringUnit   = 4096
	maxRing    = 1 << 30
	minCredits = 16
	maxCredits = 1 << 15
	maxMaps    = 32512
	tableSlots = rsockets.MaxParts
	spareWords = 32   // receives beyond the credits, for words that need no credit
	sendDepth  = 1024 // entries of the Send Queue
	maxPending = 256  // pieces that are posted and not complete; each takes two entries of the Send Queue
	// Of the pieces that no call waits for, one in so many is signaled. It divides maxPending.
	signalEvery = 64
	inlineLimit = 1 << 10 // bytes that are copied into the Send Queue at most
	// The largest piece in bytes, and the smallest part of a ring that has more than two: each costs a word both ways.
	maxPiece    = 1 << 20
	transferLen = 1 << 18 // bytes of one step of ReadFrom, and those that a Write can always register
)

// fill sets defaults, and rejects values out of range.
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
