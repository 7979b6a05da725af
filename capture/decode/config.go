package decode

import "github.com/goiwarp/iwarp/capture"

// Config says how a capture is decoded. The zero value is good for most purposes.
type Config struct {
	// Capture has the limits of the tracker that reads the packets.
	Capture capture.Config
	// Want, if not nil, tells which connections are looked at.
	Want func(c *capture.Connection) bool
	// Expect, if not nil, tells which connections are iWARP whatever they begin with: one that
	// does not begin like iWARP is reported all the same, with what it begins with.
	Expect func(c *capture.Connection) bool
	// WantSCTP and ExpectSCTP are the same for DDP sessions over SCTP, and for associations.
	WantSCTP   func(s *Session) bool
	ExpectSCTP func(a *capture.Association) bool
	// MaxULP is how many bytes, about, are kept of what the upper layers of all connections have said. The connection that
	// has been quiet for longest is given up first: see [ULPCount]. 0 is 256 MiB.
	MaxULP int
	// After, if not nil, is called by [Run] for each packet when its events are over.
	After func(p *capture.Packet)
}

// Bounds of what is kept for one connection.
const (
	maxKept     = 16        // segments, until it is known whether it is iWARP
	maxHeld     = 256 << 10 // bytes of a direction, until it is known what they are
	maxChunks   = 4096      // segments of a direction with bytes that are not worked off
	maxGuess    = 160 << 10 // bytes of a direction that are searched for FPDUs
	maxHints    = 8         // searches for FPDUs in a direction that found none
	maxFindings = 10        // of a name that are told of
	maxGaps     = 256       // of a direction
	maxReads    = 4096      // Read Requests without Response
	// MaxSTags is how many STags of a direction are counted apart.
	MaxSTags = 1024
)
