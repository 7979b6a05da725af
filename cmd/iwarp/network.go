package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/network"
)

// networkFlag chooses the lower layer that a command runs over.
type networkFlag struct {
	Network networkName `enum:"${networks}" default:"tcp" placeholder:"NAME" help:"What to run over (${enum}): TCP with MPA, SCTP in UDP (RFC 5043; sctp:udp is another name), the SCTP of the kernel, or a TCP in user space that is aware of MPA: with --tun, or within one process where the command has both ends."`
	TUN     string      `name:"tun" placeholder:"DEVICE=ADDRESS" help:"With --network usertcp: have that TCP at this TUN device of Linux's, with an address of its own, so that it meets other hosts. Takes root or CAP_NET_ADMIN. It is to be up, with an address and a route (ip tuntap add dev DEVICE mode tun; ip addr add 198.51.100.1/24 dev DEVICE; ip link set DEVICE up). A server makes it if there is none, and warns that it is not up."`
}

// A networkName is the name of a network, in place of the other one that it may have.
type networkName string

// Decode takes either. What is no name is not in the enumeration of the option.
func (n *networkName) Decode(ctx *kong.DecodeContext) error {
	var text string
	err := valueNext(ctx)
	if err == nil {
		err = ctx.Scan.PopValueInto("name", &text)
	}
	if *n = networkName(text); *n == network.SCTPInUDP {
		*n = network.SCTP
	}
	return err
}

// name is that of the network, as package network has it.
func (f *networkFlag) name() string {
	if f.TUN != "" {
		return network.OnTUN(f.TUN)
	}
	return string(f.Network)
}

// over is the network that is named.
func (f *networkFlag) over() *network.Network {
	n, _ := network.Open(f.name()) // check has seen it
	return n
}

// streams reports whether connections are streams with MPA.
func (f *networkFlag) streams() bool { return f.over().Streams }

// warn tells who listens, and would wait in silence, that nobody can come as yet.
func warn(std streams, command string, over *network.Network) {
	if err := over.Unready(); err != nil {
		fmt.Fprintf(std.err, "iwarp: %s: %v\n", command, err)
	}
}

// apart refuses a network whose both ends are in one process, to a command that has one of them; so says what there is
// not.
func (f *networkFlag) apart(command, so string) error {
	if f.over().Inside {
		return usage("%s: --network: with %s both ends are in one process, so that %s without --tun",
			command, f.Network, so)
	}
	return nil
}

// check refuses a device that is none, and a recording of what others send.
func (f *networkFlag) check(command, pcap string) error {
	if f.TUN != "" && f.Network != network.UserTCP {
		return usage("%s: --tun: it is for --network %s", command, network.UserTCP)
	}
	if _, err := network.Open(f.name()); err != nil {
		return usage("%s: --tun: %w", command, err)
	}
	if over := f.over(); pcap != "" && !over.Sockets && !over.Taps {
		return usage("%s: --pcap: the kernel's packets do not pass through this process: tcpdump(8) records them",
			command)
	}
	return nil
}
