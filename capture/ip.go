package capture

import "encoding/binary"

// Lengths in bytes of headers.
const (
	ipv4Len = 20 // without options
	ipv6Len = 40
	tcpLen  = 20 // without options
)

// IP protocol numbers, which are types of IPv6 extension headers at the same time
// (RFC 8200, section 4).
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoIPv4     = 4 // RFC 2003
	protoTCP      = 6
	protoUDP      = 17
	protoIPv6     = 41 // RFC 4213
	protoRouting  = 43
	protoFragment = 44
	protoGRE      = 47
	protoESP      = 50
	protoAH       = 51
	protoICMPv6   = 58
	protoOptions  = 60
	protoEtherIP  = 97  // RFC 3378
	protoIPComp   = 108 // RFC 3173
	protoL2TP     = 115 // RFC 3931
	protoSCTP     = 132
	protoMobility = 135
	protoMPLS     = 137 // RFC 4023
	protoHIP      = 139
	protoShim6    = 140
	protoEthernet = 143 // RFC 8986
)

// A datagram is an IP packet as far as what is above wants to know it.
type datagram struct {
	tuple   tuple
	proto   byte
	segment []byte // what was captured of the TCP segment, or what it is instead
	length  int    // of that in bytes, as sent
}

// transports are the protocols above IP that are looked for.
type transports [2]byte

var (
	onlyTCP  = transports{protoTCP, protoTCP}
	forSCTP  = transports{protoSCTP, protoUDP} // RFC 6951
	onlyICMP = transports{protoICMP, protoICMPv6}
)

func (t transports) has(proto byte) bool { return proto == t[0] || proto == t[1] }

// datagram reads the headers of a packet down to those of IP.
func (p *Packet) datagram(want transports) (datagram, Skip) {
	ip, why := network(p.Link, p.Data)
	if why != 0 {
		return datagram{}, why
	}
	return datagramOf(ip, p.wireLen()-(len(p.Data)-len(ip)), want)
}

// datagramOf reads the headers of IPv4 or IPv6, and of the tunnels in it. wire is the bytes that ip had
// before the snap length cut it, padding of the link layer included.
func datagramOf(ip []byte, wire int, want transports) (d datagram, why Skip) {
	for range maxNested {
		if d, why = header(ip, wire, want); why != 0 || want.has(d.proto) && d.proto != protoUDP {
			return d, why
		}
		inner, why := d.inside()
		switch {
		case why == SkipNotTCP && want.has(d.proto):
			return d, 0
		case why != 0:
			return d, why
		}
		ip, wire = inner, d.length-(len(d.segment)-len(inner))
	}
	return d, SkipTunnel
}

// header reads one header of IPv4 or IPv6.
func header(ip []byte, wire int, want transports) (d datagram, why Skip) {
	if len(ip) == 0 {
		return d, SkipShort
	}
	switch ip[0] >> 4 {
	case 4:
		return ipv4(ip, wire, want)
	case 6:
		return ipv6(ip, wire, want)
	}
	return d, SkipMalformed
}

// ipv4 reads a header of RFC 791, section 3.1. A total length of zero is what the
// sender of a large segment leaves to its network card: then all there is counts.
// A total length beyond the end of the packet is taken for its true length, since
// some tools forget what they cut.
func ipv4(ip []byte, wire int, want transports) (d datagram, why Skip) {
	if len(ip) < ipv4Len {
		return d, SkipShort
	}
	head, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if total == 0 {
		total = wire
	}
	if head < ipv4Len || total < head {
		return d, SkipMalformed
	}
	rest := ip[min(head, len(ip)):min(len(ip), total)]
	fragment := binary.BigEndian.Uint16(ip[6:]) & 0x3fff // MF and offset
	if ip[9] == protoAH && fragment == 0 {
		var skipped int
		d.proto, skipped, why = extensions(ip[9], rest, want)
		head, rest = head+skipped, rest[skipped:]
	} else {
		d.proto, why = ip[9], want.skips(ip[9], rest, fragment != 0, fragment&0x1fff == 0)
	}
	switch {
	case why != 0:
		return d, why
	case len(ip) < head:
		return d, SkipShort
	}
	d.tuple.setIPv4(ip[12:20])
	d.segment, d.length = rest, total-head
	return d, 0
}

// ipv6 reads a header of RFC 8200, section 3, and its extensions. A payload length
// of zero is that of a jumbogram or of a large segment: then all there is counts.
func ipv6(ip []byte, wire int, want transports) (d datagram, why Skip) {
	if len(ip) < ipv6Len {
		return d, SkipShort
	}
	total := ipv6Len + int(binary.BigEndian.Uint16(ip[4:]))
	if total == ipv6Len {
		total = wire
	}
	d.tuple.setIPv6(ip[8:40])
	rest := ip[ipv6Len:min(len(ip), max(total, ipv6Len))]
	proto, skipped, why := extensions(ip[6], rest, want)
	if why != 0 {
		return d, why
	}
	d.proto = proto
	d.segment, d.length = rest[skipped:], total-ipv6Len-skipped
	return d, 0
}

// extensions returns what protocol follows IPv6's extension headers, and their bytes.
func extensions(next byte, b []byte, want transports) (proto byte, n int, why Skip) {
	fragment, begins := false, true
	for {
		rest := b[n:]
		if !isExtension(next) {
			return next, n, want.skips(next, rest, fragment, begins)
		}
		if fragment && !begins {
			return 0, 0, SkipNotTCP // or a fragment of which we cannot tell
		}
		if len(rest) < 8 {
			return 0, 0, SkipShort
		}
		size := extensionLen(next, rest)
		if next == protoFragment {
			at := binary.BigEndian.Uint16(rest[2:])
			fragment, begins = fragment || at&0xfff9 != 0, at&0xfff8 == 0
		}
		next = rest[0]
		if n += size; n > len(b) {
			return 0, 0, SkipShort
		}
	}
}

// skips says why what an IP header is followed by is not read: 0 if it is wanted, or may be a tunnel. begins tells
// that a fragment is the first one.
func (t transports) skips(proto byte, b []byte, fragment, begins bool) Skip {
	switch {
	case fragment && proto == protoUDP:
		if _, why := udpTunnel(b); begins && why != SkipNotTCP {
			return SkipFragment
		}
		return SkipNotTCP
	case fragment && (t.has(proto) || isTunnel(proto)):
		return SkipFragment
	case t.has(proto) || isTunnel(proto):
		return 0
	case proto == protoESP:
		return SkipEncrypted
	case proto == protoIPComp || proto == protoL2TP:
		return SkipTunnel
	}
	return SkipNotTCP
}

func isExtension(next byte) bool {
	switch next {
	case protoHopByHop, protoRouting, protoFragment, protoAH, protoOptions, protoMobility, protoHIP, protoShim6:
		return true
	}
	return false
}

// extensionLen is the length in bytes of an extension header, 8 at least.
func extensionLen(kind byte, b []byte) int {
	switch kind {
	case protoFragment:
		return 8
	case protoAH: // RFC 4302, section 2.2: in units of four bytes
		return max(8, (int(b[1])+2)*4)
	}
	return (int(b[1]) + 1) * 8
}
