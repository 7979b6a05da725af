package main

import "github.com/goiwarp/iwarp/internal/network"

// networkFlag chooses the lower layer that a command runs over.
type networkFlag struct {
	Network string `enum:"${networks}" default:"tcp" placeholder:"NAME" help:"What to run over (${enum}): TCP with MPA, SCTP in UDP (RFC 5043), the SCTP of the kernel, or, within one process, a TCP in user space that is aware of MPA."`
}

// over is the network that is named.
func (f *networkFlag) over() *network.Network {
	n, _ := network.Open(f.Network) // the flag's enum has no other names
	return n
}

// streams reports whether connections are streams with MPA.
func (f *networkFlag) streams() bool { return f.over().Streams }

// records refuses a recording where there is no stream to record.
func (f *networkFlag) records(command, pcap string) error {
	if pcap != "" && !f.over().Sockets {
		return usage("%s: --pcap records connections of the system's TCP", command)
	}
	return nil
}
