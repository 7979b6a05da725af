package sctpkernel

import (
	"net"
	"net/netip"
	"strconv"
)

// An Addr is an address and an SCTP port.
type Addr struct{ netip.AddrPort }

// Network is "sctp".
func (Addr) Network() string { return "sctp" }

// scope returns the number of a zone, 0 for none.
func scope(a netip.Addr) uint32 {
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(a.Zone(), 10, 32)
	return uint32(n)
}

// zoned gives a link-local address the zone that it needs to be of use.
func zoned(a netip.Addr, scope uint32) netip.Addr {
	if a = a.Unmap(); scope == 0 || a.Is4() {
		return a
	}
	if i, err := net.InterfaceByIndex(int(scope)); err == nil {
		return a.WithZone(i.Name)
	}
	return a.WithZone(strconv.FormatUint(uint64(scope), 10))
}
