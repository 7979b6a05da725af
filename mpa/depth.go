package mpa

import "strconv"

// Depth is a depth of RDMA Reads: an IRD is how many inbound Read Requests an end takes at
// once, an ORD how many outbound ones it has under way at most. RFC 6581, section 9.1,
// sends 14 bits of it: 0 to [MaxDepth], or [NoNegotiation].
type Depth uint16

const (
	// MaxDepth is the largest depth that there is.
	MaxDepth Depth = 0x3fff - 1
	// NoNegotiation in place of an IRD or ORD means that "automatic negotiation of the
	// IRD or ORD is not desired, and that the ULP will be responsible for it": RFC 6581,
	// section 9.1.
	NoNegotiation Depth = 0x3fff
)

// String returns the number, or "not negotiated" for [NoNegotiation].
func (d Depth) String() string {
	if d == NoNegotiation {
		return "not negotiated"
	}
	return strconv.Itoa(int(d))
}
