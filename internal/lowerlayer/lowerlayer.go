// Package lowerlayer has the interfaces, errors and bounds that lower layers share with package iwarp: those that carry
// whole DDP Segments, each as one message, such as SCTP (RFC 5043), and an MPA-aware TCP (RFC 5044, section 3).
package lowerlayer

// An Arrival is an iwarp.SegmentArrival.
type Arrival struct {
	Number  uint64
	Segment []byte
	End     bool
	Err     error
}
