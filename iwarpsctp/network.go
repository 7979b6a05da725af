// Package iwarpsctp carries the connections of package iwarp over SCTP in place of TCP and MPA (RFC 5043; RFC 6581,
// section 7): by an SCTP in user space, in UDP (RFC 6951), which is there on every system, or by that of Linux's
// kernel.
//
//	sctp := new(iwarpsctp.Network)
//	ln, err := iwarp.Listen(ctx, "sctp", addr, iwarp.ListenConfig{Network: sctp})
//	qp, err := (&iwarp.Dialer{Network: sctp}).Dial(ctx, "sctp", addr)
package iwarpsctp

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/sctp"
)

// A Network is SCTP, for the Network of an [iwarp.Dialer] and of an [iwarp.ListenConfig]. The zero value is usable.
// Any number of them may have the same one, at the same time. Its fields do not change while it is used, and it is
// not copied.
//
// The networks to dial and to listen on are "sctp", "sctp4" and "sctp6": SCTP in UDP, in user space, whose SCTP
// port is that of UDP; "sctp:udp" names it, too. "sctp:kernel", "sctp4:kernel" and "sctp6:kernel" are the SCTP of
// Linux's kernel, if it has that (module sctp): if not, and elsewhere, the error wraps [errors.ErrUnsupported]. The
// two understand each other. Addresses over SCTP in user space are of UDP (*net.UDPAddr): what a firewall sees.
// Those over the kernel's have the Network "sctp". A handshake takes 10 s at most.
//
// Of an [iwarp.Dialer], LocalAddr, Resolver and Control of its Net are used; LocalAddr may be a *net.UDPAddr,
// *net.TCPAddr or *net.IPAddr. Of an [iwarp.ListenConfig] it is Control. Markers, NoCRC, and a dialect or kind that
// only MPA has, are [iwarp.ErrInvalid] in the MPA of a Dialer; what is about MPA in a ListenConfig has no effect.
type Network struct {
	// MTU is that of the path of SCTP in user space: the largest IP packet to be sent, in bytes, from 592 to 8220. It
	// is not discovered (RFC 6951, section 5.6); if zero, it is 1500. Stats.MULPDU of a QP follows from it. An
	// association whose peer sends more than 8164 bytes of data in one chunk ends, as that is more than this carrier
	// can take. The kernel's SCTP finds its own: there an MTU is ErrInvalid.
	MTU int
	// WrapUDP, if it is set, gets each UDP socket of SCTP in user space, and returns the one to use in its place: one
	// that records what passes, or spoils it for a test. Each association that is dialed has one; all associations of
	// a Listener share one. If WrapUDP fails, the socket is closed. With the kernel's SCTP, which has no such socket,
	// WrapUDP is ErrInvalid.
	WrapUDP func(UDPSocket) (UDPSocket, error)
	// With ShareAssociations, Dials share associations if they have the same network, address and LocalAddr: each QP
	// is a DDP Stream Session of its own, on a stream of its own (RFC 5043, section 6), and there is one handshake,
	// one congestion control and one window for all. What ends the association ends all of its QPs. It lasts as long
	// as any QP uses it. In user space an association has room for 32 QPs, and for 8 where either end is
	// "sctp:kernel"; further Dials open another. MPA.Timeout, and Control and Resolver, are those of the Dial that
	// has opened it. By default each Dial has an association of its own. Dials over two Networks share nothing.
	ShareAssociations bool

	shared  sharing
	ordered atomic.Uint64
	dropped atomic.Uint64
}

// Stats returns what peers have sent, over all associations of the Network, that they should not have sent in that
// way, and that does no harm.
func (n *Network) Stats() sctp.Stats {
	return sctp.Stats{Ordered: n.ordered.Load(), Dropped: n.dropped.Load()}
}

func (n *Network) count(s sctp.Stats) {
	n.ordered.Add(s.Ordered)
	n.dropped.Add(s.Dropped)
}

// check refuses networks that there are not, and what the one that is named does not have.
func (n *Network) check(network string) error {
	switch family, by, _ := strings.Cut(network, ":"); {
	case family != "sctp" && family != "sctp4" && family != "sctp6", by != "udp" && by != "kernel" && family != network:
		return fmt.Errorf("%w: network %q: set sctp, sctp4 or sctp6, which may name their carrier: sctp:udp, sctp:kernel",
			iwarp.ErrInvalid, network)
	case byKernel(network) && n.MTU != 0:
		return fmt.Errorf("%w: an MTU, which is for SCTP in user space, over %q, which finds its own",
			iwarp.ErrInvalid, network)
	case byKernel(network) && n.WrapUDP != nil:
		return fmt.Errorf("%w: WrapUDP, which is for SCTP in user space, over %q", iwarp.ErrInvalid, network)
	case n.MTU != 0 && (n.MTU < sctpudp.MinMTU || n.MTU > sctpudp.MaxMTU):
		return fmt.Errorf("%w: an MTU of %d bytes over SCTP: set one from %d to %d",
			iwarp.ErrInvalid, n.MTU, sctpudp.MinMTU, sctpudp.MaxMTU)
	}
	return nil
}

// byKernel reports whether the carrier of a network is the kernel's.
func byKernel(network string) bool { return strings.HasSuffix(network, ":kernel") }

// family is "", "4" or "6".
func family(network string) string {
	name, _, _ := strings.Cut(network, ":")
	return strings.TrimPrefix(name, "sctp")
}

// udp is the network that carries SCTP in user space.
func udp(network string) string { return "udp" + family(network) }

// A UDPSocket is a socket of UDP as SCTP in user space uses it, such as a *net.UDPConn. Its LocalAddr is a
// *net.UDPAddr.
type UDPSocket interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// wrap passes a socket through WrapUDP, and closes it if that fails or panics.
func (n *Network) wrap(pc net.PacketConn) (UDPSocket, error) {
	c := pc.(*net.UDPConn)
	if n.WrapUDP == nil {
		return c, nil
	}
	sctpudp.Enlarge(c)
	wrapped := false
	defer func() {
		if !wrapped {
			_ = c.Close()
		}
	}()
	socket, err := n.WrapUDP(c)
	if err == nil && socket == nil {
		err = fmt.Errorf("%w: it returned neither a socket nor an error", iwarp.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("WrapUDP: %w", err)
	}
	wrapped = true
	return socket, nil
}
