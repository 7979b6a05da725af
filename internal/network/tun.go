package network

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/usertcp"
)

// lastWords bounds how long Close waits, at a TUN device, until peers have acknowledged what they were sent.
const lastWords = 5 * time.Second

// A tun is where a TCP in user space meets the network of the host.
type tun struct {
	device  string
	address netip.Addr
}

// OnTUN is the name of the TCP in user space at a TUN device of Linux's, which is told as DEVICE=ADDRESS: the address
// is that of the TCP, and not the device's own.
func OnTUN(device string) string { return UserTCP + ":" + device }

// SplitTUN is the name of a network without the device that OnTUN has put there, and the device, DEVICE=ADDRESS.
func SplitTUN(name string) (network, device string) {
	if device, ok := strings.CutPrefix(name, UserTCP+":"); ok {
		return UserTCP, device
	}
	return name, ""
}

// onTUN returns such a network. The device is opened when it is first used.
func onTUN(text string) (*Network, error) {
	device, address, ok := strings.Cut(text, "=")
	ip, err := netip.ParseAddr(address)
	if !ok || device == "" || err != nil {
		return nil, fmt.Errorf("%.60q is no TUN device and address, as iwarp0=198.51.100.2 is", text)
	}
	return &Network{
		Name: UserTCP, Text: fmt.Sprintf("TCP in user space, %v at the TUN device %s", ip, device), Streams: true, Unordered: true, Taps: true,
		stacks: &stacks{at: &tun{device, ip}},
	}, nil
}

// Unready says why nothing comes over the network, and nothing can leave, as yet: it is at a TUN device that is not up. Where
// there is none of that name, Listen makes it, and it is others who set it up.
func (n *Network) Unready() error {
	if n.stacks == nil || n.stacks.at == nil {
		return nil
	}
	name := n.stacks.at.device
	device, err := net.InterfaceByName(name)
	switch {
	case err != nil:
		return fmt.Errorf("--tun: there is no TUN device %s: ip tuntap add dev %s mode tun, and then an address and a route, and ip link set %s up: %w", name, name, name, err)
	case device.Flags&net.FlagUp == 0:
		return fmt.Errorf("--tun: the TUN device %s is not up: ip link set %s up, with an address and a route", name, name)
	}
	return nil
}

// stack opens the device, and returns a TCP there.
func (t *tun) stack(tapped func(usertcp.Link) usertcp.Link) (*usertcp.Stack, error) {
	device, err := openTUN(t.device)
	if err != nil {
		return nil, err
	}
	link := tapped(device)
	s, err := usertcp.New(usertcp.Config{Link: link, Addresses: []netip.Addr{t.address}})
	if err != nil {
		_ = link.Close()
	}
	return s, err
}
