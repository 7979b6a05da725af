package capture

import "encoding/binary"

// Lengths in octets of headers.
const (
	ipv4Len = 20 // without options
	ipv6Len = 40
	tcpLen  = 20 // without options
)

// IP protocol numbers, which are types of IPv6 extension headers at the same time
// (RFC 8200, section 4).
const (
	protoHopByHop = 0
	protoTCP      = 6
	protoRouting  = 43
	protoFragment = 44
	protoAH       = 51
	protoOptions  = 60
	protoMobility = 135
	protoHIP      = 139
	protoShim6    = 140
)

// A datagram is an IP packet as far as TCP wants to know it.
type datagram struct {
	tuple   tuple
	segment []byte // what was captured of the TCP segment
	length  int    // of the TCP segment in octets, as sent
}

// datagramOf reads the headers of IPv4 or IPv6. wire is the octets that ip had
// before the snap length cut it, padding of the link layer included.
func datagramOf(ip []byte, wire int) (d datagram, why Skip) {
	if len(ip) == 0 {
		return d, SkipShort
	}
	switch ip[0] >> 4 {
	case 4:
		return ipv4(ip, wire)
	case 6:
		return ipv6(ip, wire)
	}
	return d, SkipMalformed
}

// ipv4 reads a header of RFC 791, section 3.1. A total length of zero is what the
// sender of a large segment leaves to its network card: then all there is counts.
// A total length beyond the end of the packet is taken for its true length, since
// some tools forget what they cut.
func ipv4(ip []byte, wire int) (d datagram, why Skip) {
	if len(ip) < ipv4Len {
		return d, SkipShort
	}
	head, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if total == 0 {
		total = wire
	}
	switch fragment := binary.BigEndian.Uint16(ip[6:]) & 0x3fff; { // MF and offset
	case head < ipv4Len || total < head:
		return d, SkipMalformed
	case ip[9] != protoTCP:
		return d, SkipNotTCP
	case fragment != 0:
		return d, SkipFragment
	case len(ip) < head:
		return d, SkipShort
	}
	d.tuple.setIPv4(ip[12:20])
	d.segment, d.length = ip[head:min(len(ip), total)], total-head
	return d, 0
}

// ipv6 reads a header of RFC 8200, section 3, and its extensions. A payload length
// of zero is that of a jumbogram or of a large segment: then all there is counts.
func ipv6(ip []byte, wire int) (d datagram, why Skip) {
	if len(ip) < ipv6Len {
		return d, SkipShort
	}
	total := ipv6Len + int(binary.BigEndian.Uint16(ip[4:]))
	if total == ipv6Len {
		total = wire
	}
	d.tuple.setIPv6(ip[8:40])
	rest := ip[ipv6Len:min(len(ip), max(total, ipv6Len))]
	skipped, why := extensions(ip[6], rest)
	if why != 0 {
		return d, why
	}
	d.segment, d.length = rest[skipped:], total-ipv6Len-skipped
	return d, 0
}

// extensions returns the octets of the extension headers between IPv6 and TCP.
func extensions(next byte, b []byte) (n int, why Skip) {
	fragment := false
	for {
		size := 0
		switch rest := b[n:]; {
		case next == protoTCP && fragment:
			return 0, SkipFragment
		case next == protoTCP:
			return n, 0
		case !isExtension(next):
			return 0, SkipNotTCP
		case len(rest) < 8:
			return 0, SkipShort
		default:
			size = extensionLen(next, rest)
			fragment = fragment || next == protoFragment && binary.BigEndian.Uint16(rest[2:])&0xfff9 != 0
			next = rest[0]
		}
		if fragment && next != protoTCP {
			return 0, SkipNotTCP // or a fragment of which we cannot tell
		}
		if n += size; n > len(b) {
			return 0, SkipShort
		}
	}
}

func isExtension(next byte) bool {
	switch next {
	case protoHopByHop, protoRouting, protoFragment, protoAH, protoOptions, protoMobility, protoHIP, protoShim6:
		return true
	}
	return false
}

// extensionLen is the length in octets of an extension header, 8 at least.
func extensionLen(kind byte, b []byte) int {
	switch kind {
	case protoFragment:
		return 8
	case protoAH: // RFC 4302, section 2.2: in units of four octets
		return max(8, (int(b[1])+2)*4)
	}
	return (int(b[1]) + 1) * 8
}
