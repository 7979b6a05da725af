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
		Name: UserTCP, Text: fmt.Sprintf("TCP in user space, %v at the TUN device %s", ip, device), Streams: true,
		Unordered: true, Taps: true,
		stacks: &stacks{at: &tun{device, ip}},
	}, nil
}

// A DownError says why nothing comes by a TUN device, and nothing can leave, as yet.
type DownError struct {
	Device string
	Err    error // there is no such device; nil: it is not up
}

// Error says what to do.
func (e *DownError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("--tun: there is no TUN device %s: ip tuntap add dev %[1]s mode tun, and then an address and a route, and ip link set %[1]s up: %v", e.Device, e.Err)
	}
	return fmt.Sprintf("--tun: the TUN device %s is not up: ip link set %[1]s up, with an address and a route",
		e.Device)
}

// Unwrap returns Err.
func (e *DownError) Unwrap() error { return e.Err }

// Unready says why nothing comes over the network, and nothing can leave, as yet: it is a *DownError. Where there is no
// device of that name, Listen makes it, and it is others who set it up.
func (n *Network) Unready() error {
	if n.stacks == nil || n.stacks.at == nil {
		return nil
	}
	name := n.stacks.at.device
	device, err := net.InterfaceByName(name)
	switch {
	case err != nil:
		return &DownError{name, err}
	case device.Flags&net.FlagUp == 0:
		return &DownError{Device: name}
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
