package main

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// announce says what there is, and what to type on a host.
func (c *diskCmd) announce(std streams, ln *iwarp.Listener, cfg target.Config) {
	for i, n := range cfg.Namespaces {
		fmt.Fprintf(std.out, "disk %d: %s, %s in blocks of %d bytes\n",
			i+1, c.Disk[i], wording.Size(n.Backend.Size()), n.Backend.BlockSize())
	}
	fmt.Fprintf(std.out, "listening on %v\n", ln.Addr())
	for _, at := range c.reachable(ln, cfg) {
		if c.TLSCert != "" { // which no host has but our own
			fmt.Fprintf(std.out, "iwarp disk --list nvme://%v/%s --tls\n", at, cfg.NQN)
			continue
		}
		fmt.Fprintf(std.out, "nvme connect -t rdma -a %s -s %d -n %s\n", at.Addr(), at.Port(), cfg.NQN)
	}
}

// reachable are the addresses by which hosts come: those that were named, or the one that is listened on, or of the
// host's if that is any.
func (c *diskCmd) reachable(ln *iwarp.Listener, cfg target.Config) []netip.AddrPort {
	at, err := netip.ParseAddrPort(ln.Addr().String())
	switch {
	case len(cfg.Addresses) > 0 || err != nil:
		return cfg.Addresses
	case !at.Addr().IsUnspecified():
		return []netip.AddrPort{netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}
	}
	ports, _ := hostPorts() // else it is this host, at least
	return []netip.AddrPort{netip.AddrPortFrom(ownAddress(ports), at.Port())}
}

// A hostPort is a network interface of the host, with its IP addresses.
type hostPort struct {
	net.Flags
	addrs []netip.Addr
}

// hostPorts returns the interfaces of the host. The error is the system's.
func hostPorts() (ports []hostPort, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range all {
		p := hostPort{Flags: all[i].Flags}
		addrs, err := all[i].Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil { // others are no IP addresses
				p.addrs = append(p.addrs, prefix.Addr())
			}
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// ownAddress is one at which other hosts reach this one, of IPv4 if it has any, or else that of loopback.
func ownAddress(ports []hostPort) netip.Addr {
	own := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, p := range ports {
		for _, at := range p.addrs {
			switch {
			case p.Flags&net.FlagUp == 0 || p.Flags&net.FlagLoopback != 0:
			case at.Is4():
				return at
			case own.IsLoopback() && !at.IsLinkLocalUnicast():
				own = at
			}
		}
	}
	return own
}
