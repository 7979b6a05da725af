package admission

import (
	"net"
	"net/netip"
)

// SourceOf returns the part of an address that counts as one source: an IPv4 address, or the 64 bits of an IPv6 address
// that one host has for itself. It is invalid for a nil address, and for one of another network: there sources cannot
// be told apart.
func SourceOf(a net.Addr) netip.Prefix {
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
		return t.AddrPort() // spares writing and parsing text
	}
	if a == nil {
		return netip.AddrPort{}
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return ap
}
