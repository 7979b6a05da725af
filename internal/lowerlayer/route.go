package lowerlayer

import (
	"net"
	"net/netip"
)

// MaxMessage is the longest message that is taken, in bytes. No DDP Segment is longer.
const MaxMessage = 66 << 10

// Route returns the address that the system sends to a peer from.
func Route(peer netip.AddrPort) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(peer)) // it sends nothing
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
