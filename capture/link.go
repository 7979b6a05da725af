package capture

import "encoding/binary"

// Lengths in bytes of link layer headers.
const (
	ethernetLen = 14
	vlanLen     = 4
	loopbackLen = 4
	sllLen      = 16
	sll2Len     = 20
)

// maxLLC is the largest length in place of an EtherType, and what Linux's cooked captures have there is smaller.
const maxLLC = 1500

// EtherTypes.
const (
	etherIPv4   = 0x0800
	etherTEB    = 0x6558 // Ethernet in something else
	etherVLAN   = 0x8100 // IEEE 802.1Q
	etherIPv6   = 0x86dd
	etherMPLS   = 0x8847
	etherMPLSUp = 0x8848 // with labels that the next router has chosen
	etherPPPoE  = 0x8864 // RFC 2516: a session
	etherQinQ   = 0x88a8 // IEEE 802.1ad
	etherMACsec = 0x88e5 // IEEE 802.1AE
	etherPBB    = 0x88e7 // IEEE 802.1ah
	etherVNTag  = 0x8926
	etherETag   = 0x893f // IEEE 802.1BR
	etherNSH    = 0x894f // RFC 8300
	etherOld    = 0x9100 // an outer tag before 802.1ad
)

// afINET is the address family of IPv4 everywhere; that of IPv6 is another one on
// each system.
const afINET = 2

// network returns the IP packet in a frame, which is told from its first byte.
func network(link LinkType, b []byte) (ip []byte, why Skip) {
	switch link {
	case LinkEthernet:
		return ethernet(b, ethernetLen-2, ethernetLen)
	case LinkSLL:
		return ethernet(b, sllLen-2, sllLen)
	case LinkSLL2:
		return ethernet(b, 0, sll2Len)
	case LinkNull, LinkLoop:
		return loopback(b)
	case LinkRaw, LinkRawBSD, LinkRawOpen, LinkIPv4, LinkIPv6:
		return b, 0
	}
	return nil, SkipLink
}

// ethernet looks past a header of n bytes with an EtherType in it at a given
// place, and past what follows in front of IP.
func ethernet(b []byte, at, n int) (ip []byte, why Skip) {
	if len(b) < n {
		return nil, SkipShort
	}
	return etherType(binary.BigEndian.Uint16(b[at:]), b[n:])
}

// loopback looks past an address family. Which byte order the host has that
// wrote it is told by where its zeros are.
func loopback(b []byte) (ip []byte, why Skip) {
	if len(b) < loopbackLen {
		return nil, SkipShort
	}
	family := binary.LittleEndian.Uint32(b)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(b)
	}
	switch family {
	case afINET, 10, 24, 28, 30: // the rest is IPv6 on Linux, NetBSD and OpenBSD, FreeBSD, Darwin
		return b[loopbackLen:], 0
	}
	return nil, SkipNotIP
}
