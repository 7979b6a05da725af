package usertcp

import (
	"net"
	"net/netip"
	"strconv"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// parse reads an address as package net does, except for names of hosts, which there is no resolver for. A host may be
// missing if any will do.
func parse(network, address string, any bool) (netip.AddrPort, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return netip.AddrPort{}, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, &net.AddrError{Err: "not the number of a port", Addr: service}
	}
	if host == "" && any {
		return netip.AddrPortFrom(netip.Addr{}, uint16(port)), nil
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return netip.AddrPort{}, &net.AddrError{Err: "not an IP address", Addr: host}
	case network == "tcp4" && !ip.Unmap().Is4() || network == "tcp6" && ip.Unmap().Is4():
		return netip.AddrPort{}, &net.AddrError{Err: "no address of " + network, Addr: host}
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), nil
}

// full is an address as gVisor has it; without a host it is that of any.
func full(a netip.AddrPort) tcpip.FullAddress {
	f := tcpip.FullAddress{Port: a.Port()}
	if a.Addr().IsValid() {
		f.Addr = tcpip.AddrFromSlice(a.Addr().AsSlice())
	}
	return f
}

// addrPort is an address of gVisor's.
func addrPort(a tcpip.FullAddress) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(a.Addr.AsSlice())
	return netip.AddrPortFrom(ip.Unmap(), a.Port)
}

func tcpAddr(a netip.AddrPort) *net.TCPAddr {
	if !a.Addr().IsValid() {
		return &net.TCPAddr{Port: int(a.Port())}
	}
	return net.TCPAddrFromAddrPort(a)
}
