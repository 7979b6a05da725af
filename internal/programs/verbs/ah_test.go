//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// TestLastOf finds the broadcast address of a network of IPv4, where there is one.
func TestLastOf(t *testing.T) {
	for network, last := range map[string]netip.Addr{
		"127.0.0.1/8":    netip.MustParseAddr("127.255.255.255"),
		"192.0.2.17/24":  netip.MustParseAddr("192.0.2.255"),
		"192.0.2.17/30":  netip.MustParseAddr("192.0.2.19"),
		"192.0.2.17/31":  {},
		"192.0.2.17/32":  {},
		"2001:db8::1/64": {},
	} {
		ip, n, err := net.ParseCIDR(network)
		if err != nil {
			t.Fatal(err)
		}
		want(t, network, lastOf(&net.IPNet{IP: ip, Mask: n.Mask}), last)
	}
}

// TestBroadcastAH: there is no address handle for all hosts of a network that this one is in.
func TestBroadcastAH(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range addresses {
		n, ok := on.(*net.IPNet)
		if !ok || !lastOf(n).IsValid() {
			continue
		}
		_, errno := p.d.CreateAH(p.pd, loopback, GID(lastOf(n).As16()))
		want(t, "broadcast of "+n.String(), errno, syscall.EINVAL)
	}
}
