// Package origin says which addresses count as one source of connections, where each source has a share of something.
package origin

import (
	"net"
	"net/netip"
)

// Of returns the part of an address that counts as one source: an IPv4 address, or the 64 bits of an IPv6
// address that one host has for itself. Other networks, and connections that do not say, have no addresses to tell sources by:
// theirs is invalid.
func Of(a net.Addr) netip.Prefix {
	bits := 64
	ip := addrPort(a).Addr().Unmap().WithZone("")
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}

// addrPort returns an IP address and its port, or the zero AddrPort.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort() // without the way over text
	}
	if a == nil {
		return netip.AddrPort{}
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return ap
}
