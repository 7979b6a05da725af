package decode

import "github.com/goiwarp/iwarp/capture"

// Config says how a capture is decoded. The zero value will do.
type Config struct {
	// Capture is the limits of the tracker below.
	Capture capture.Config
	// Octets asks for the octets of FPDUs as on the stream: see [FPDU.Octets]. It costs
	// a copy.
	Octets bool
	// Want, if not nil, tells which connections are looked at.
	Want func(c *capture.Connection) bool
}

// Bounds of what is kept for one connection.
const (
	maxKept     = 16        // segments, until it is known whether it is iWARP
	maxHeld     = 256 << 10 // octets of a direction, until it is known what they are
	maxChunks   = 4096      // segments of a direction with octets that are not worked off
	maxGuess    = 160 << 10 // octets of a direction that are searched for FPDUs
	maxHints    = 8         // searches for FPDUs in a direction that found none
	maxFindings = 10        // of a name that are told of
	maxGaps     = 256       // of a direction
	maxReads    = 4096      // Read Requests without Response
	// MaxSTags is how many STags of a direction are counted apart.
	MaxSTags = 1024
)
