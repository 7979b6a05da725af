package capture

import "github.com/goiwarp/iwarp/internal/wording"

// Skip is why a packet is not a segment of a TCP connection.
type Skip uint8

// The reasons to skip a packet.
const (
	SkipLink      Skip = iota + 1 // its link type is none that we know
	SkipNotIP                     // it is not IP: ARP, say
	SkipNotTCP                    // it is not TCP
	SkipFragment                  // it is a fragment of an IP packet with TCP in it
	SkipShort                     // its snap length has cut it within a header
	SkipMalformed                 // a header contradicts itself or the length of the packet
)

var skipNames = [...]string{"", "unknown link type", "not IP", "not TCP", "IP fragment", "headers cut off", "malformed header"}

func (s Skip) String() string { return wording.Name(s, "reason", skipNames[:]) }
