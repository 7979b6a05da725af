package datagram

import (
	"encoding/binary"
	"net/netip"
)

// RouteLen is the length of what a receive has before the payload, in bytes: the addresses of a datagram, as a device
// of RoCE v2 writes them.
const RouteLen = 40

const (
	ipv4Len   = 20
	udpLen    = 8
	udp       = 17
	hopLimit  = 64
	ipv4First = 4<<4 | ipv4Len/4
	ipv6First = 6 << 4
)

// A Route has the addresses of a datagram. Between addresses of IPv4 it is 20 bytes of 0 and the header of IPv4;
// otherwise it is the header of IPv6, which has the layout of InfiniBand's Global Route Header (GRH). The packet that
// it describes is one of UDP with a [Header].
type Route [RouteLen]byte

// RouteOf returns the Route of a datagram with n bytes of payload.
func RouteOf(from, to GID, n int) (r Route) {
	source, destination := netip.AddrFrom16(from), netip.AddrFrom16(to)
	if !source.Is4In6() || !destination.Is4In6() {
		r[0], r[6], r[7] = ipv6First, udp, hopLimit
		binary.BigEndian.PutUint16(r[4:], uint16(udpLen+HeaderLen+n))
		copy(r[8:], from[:])
		copy(r[24:], to[:])
		return r
	}
	ip := r[RouteLen-ipv4Len:]
	ip[0], ip[8], ip[9] = ipv4First, hopLimit, udp
	binary.BigEndian.PutUint16(ip[2:], uint16(ipv4Len+udpLen+HeaderLen+n))
	copy(ip[12:], from[12:])
	copy(ip[16:], to[12:])
	binary.BigEndian.PutUint16(ip[10:], ^sum(ip))
	return r
}

// IPv4 reports whether a Route has no header of IPv6.
func (r *Route) IPv4() bool { return r[0]>>4 != 6 }

// GIDs returns the addresses in a Route. It reports false for one that has none: the program has overwritten it.
func (r *Route) GIDs() (from, to GID, ok bool) {
	if !r.IPv4() {
		return GID(r[8:]), GID(r[24:]), true
	}
	ip := r[RouteLen-ipv4Len:]
	if ip[0] != ipv4First || sum(ip) != 0xffff {
		return from, to, false
	}
	return mapped(ip[12:]), mapped(ip[16:]), true
}

func mapped(ip []byte) GID { return netip.AddrFrom4([4]byte(ip)).As16() }

// sum is the ones' complement sum of RFC 1071.
func sum(b []byte) uint16 {
	var s uint32
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
