package iwarp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/sctpkernel"
	"github.com/goiwarp/iwarp/internal/sctpudp"
)

// isSCTP reports whether a network is SCTP's: "sctp", "sctp4" or "sctp6", alone or with the carrier that it names.
func isSCTP(network string) bool {
	family, _, _ := strings.Cut(network, ":")
	known := family == "sctp" || family == "sctp4" || family == "sctp6"
	return known && (family == network || byKernel(network) || strings.HasSuffix(network, ":udp"))
}

// byKernel reports whether the carrier of a network of SCTP is the kernel's. It is that in UDP otherwise, which is there on
// every system.
func byKernel(network string) bool { return strings.HasSuffix(network, ":kernel") }

// family is "", "4" or "6", of a network of SCTP.
func family(network string) string {
	name, _, _ := strings.Cut(network, ":")
	return strings.TrimPrefix(name, "sctp")
}

// udp is the network that carries one of SCTP's.
func udp(network string) string { return "udp" + family(network) }

// dialKernel opens an association by the kernel's SCTP.
func (d *Dialer) dialKernel(ctx context.Context, network, addr, local string) (association.Carrier, error) {
	to, err := d.resolve(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	from, err := net.ResolveUDPAddr(udp(network), local)
	if err != nil {
		return nil, err
	}
	at := from.AddrPort()
	return carrierOf(sctpkernel.Dial(ctx, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), to, sctpkernel.Config{Control: d.Net.Control}))
}

// noStack refuses a Stack: who gave one does not want the operating system's network.
func noStack(in string) error {
	return fmt.Errorf("%w: %s.Stack is a TCP, and SCTP does not run over it", ErrInvalid, in)
}

// checkUDP judges what a Dialer or ListenConfig has for SCTP in user space.
func checkUDP(network string, mtu int, wraps bool) error {
	inUDP := isSCTP(network) && !byKernel(network)
	switch {
	case mtu != 0 && !inUDP:
		return fmt.Errorf("%w: an MTU, which is for SCTP in user space, over %q, which finds its own", ErrInvalid, network)
	case wraps && !inUDP:
		return fmt.Errorf("%w: WrapUDP, which is for SCTP in user space, over %q", ErrInvalid, network)
	case mtu != 0 && (mtu < sctpudp.MinMTU || mtu > sctpudp.MaxMTU):
		return fmt.Errorf("%w: an MTU of %d octets over SCTP, which may have %d to %d", ErrInvalid, mtu, sctpudp.MinMTU, sctpudp.MaxMTU)
	}
	return nil
}

// A UDPSocket is a socket of UDP as SCTP in user space uses it, such as a *net.UDPConn. Its LocalAddr is a *net.UDPAddr.
type UDPSocket interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// wrapUDP passes a socket through the WrapUDP of a Dialer or ListenConfig, and closes it if that fails.
func wrapUDP(in string, wrap func(UDPSocket) (UDPSocket, error), pc net.PacketConn) (socket UDPSocket, err error) {
	c := pc.(*net.UDPConn)
	if wrap == nil {
		return c, nil
	}
	sctpudp.Enlarge(c)
	err = unlessPanic(func() { _ = c.Close() }, func() (err error) {
		socket, err = wrap(c)
		return err
	})
	if err == nil && socket == nil {
		err = fmt.Errorf("%w: WrapUDP returned neither a socket nor an error", ErrInvalid)
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("%s.WrapUDP: %w", in, err)
	}
	return socket, nil
}

// carrierOf keeps a nil that has a type from being taken for a Carrier.
func carrierOf[C association.Carrier](c C, err error) (association.Carrier, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// associations are those that peers open.
type associations interface {
	socket
	// next waits for one.
	next(context.Context) (association.Carrier, error)
}

// kernelListener and udpListener are sockets with associations, as a Listener closes them: those that there are go on.
type (
	kernelListener struct{ *sctpkernel.Listener }
	udpListener    struct{ *sctpudp.Endpoint }
)

func (l kernelListener) next(ctx context.Context) (association.Carrier, error) {
	return carrierOf(l.Listener.Accept(ctx))
}

func (l udpListener) next(ctx context.Context) (association.Carrier, error) {
	return carrierOf(l.Endpoint.Accept(ctx))
}
