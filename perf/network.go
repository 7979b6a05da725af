package perf

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
)

// A Tap gets what the connections of a network run on, and returns what to use in its place, which may record what
// passes: the UDP socket of SCTP in user space (see iwarpsctp.Network.WrapUDP), and the Link of a TCP in user space.
// What is nil, or for another network, is not called.
type Tap = network.Tap

// open returns a network by its name.
func open(name string) (*network.Network, error) {
	n, err := network.Open(name)
	if err != nil {
		return nil, &OptionError{"network", err.Error()}
	}
	return n, nil
}

// begun completes options, and opens their network, which is to be closed.
func begun(o Options) (Options, *network.Network, error) {
	o, err := o.Resolved()
	if err != nil {
		return o, nil, err
	}
	over, err := open(o.Network)
	return o, over, err
}

// validateNetwork refuses a network that does not exist, and what one without MPA, or without sockets of TCP, does
// not have.
func (o Options) validateNetwork() error {
	over, err := open(o.Network)
	if err != nil {
		return err
	}
	switch {
	case o.Reorder < 0 || o.Reorder > 100:
		return &OptionError{"reorder", fmt.Sprintf("%d %% of the packets cannot be late", o.Reorder)}
	case o.Reorder > 0 && over.Name == network.KernelSCTP:
		return &OptionError{"reorder", "the kernel's packets do not pass through this process"}
	case o.Reorder > 0 && !over.Unordered:
		return &OptionError{"reorder", "this network delivers in order only"}
	case o.Reorder > 0 && over.Streams && !over.Inside:
		return &OptionError{"reorder", "the packets of a TUN device pass through nothing that could hold them back"}
	}
	var refused *network.Refused
	if errors.As(over.Check(mpa.Offer{Markers: o.Markers, NoCRC: o.NoCRC, Dialect: o.Dialect, Kind: o.Kind}),
		&refused) {
		return &OptionError{refused.Option, refused.Reason}
	}
	if o.CC != "" && !over.Sockets {
		return &OptionError{"cc", "the QPs of this network have no sockets of TCP"}
	}
	return nil
}

// overtaken reports whether a Write may be placed after another that was sent after it: over SCTP wherever a packet is
// late or lost, over the TCP in user space where packets are delayed. A Write completes when the layer below has taken
// it, so that its slot is used again while it is under way.
func (o Options) overtaken() bool {
	over, err := open(o.Network)
	return err == nil && over.Unordered && (o.Reorder > 0 || !over.Streams)
}

// plainHost returns the host at which plain TCP listens, and is dialed: that of an address, if the operating
// system has it.
func plainHost(over *network.Network, addr net.Addr) (string, error) {
	if over.Inside {
		return "127.0.0.1", nil
	}
	host, _, err := net.SplitHostPort(addr.String())
	return host, err
}

// listen listens on a network.
func listen(ctx context.Context, over *network.Network, addr string) (*Listener, error) {
	if !over.Sockets {
		ln, err := over.Listen(ctx, addr, listenConfig())
		if err != nil {
			return nil, err
		}
		return &Listener{Listener: ln}, nil
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return newListener(ln), nil
}

func listenConfig() *iwarp.ListenConfig {
	return &iwarp.ListenConfig{Dialects: mpa.Dialects(), Messages: true}
}
