// Package carrier has what lower layers tell of themselves below package iwarp: those that carry whole DDP Segments, each
// as one message, such as SCTP (RFC 5043), and an MPA-aware TCP (RFC 5044, section 3).
package carrier

// An Arrival is an iwarp.SegmentArrival.
type Arrival struct {
	Number  uint64
	Segment []byte
	End     bool
	Err     error
}

// Bounds are iwarp.SegmentBounds.
type Bounds struct {
	First    uint64
	Segments int
	Octets   int
}
