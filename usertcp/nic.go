package usertcp

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A nic joins gVisor's stack to a Link, with the taps between them: it is a stack.LinkEndpoint.
type nic struct {
	link Link
	mtu  atomic.Uint32
	taps *taps

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher
	done       chan struct{} // the link is closed, and receive has ended
}

func newNIC(link Link, mtu int, t *taps) *nic {
	n := &nic{link: link, taps: t, done: make(chan struct{})}
	n.mtu.Store(uint32(mtu))
	return n
}

// receive takes what the link brings until it ends. What arrives is shown first, and then goes to TCP, which may answer
// from other goroutines meanwhile.
func (n *nic) receive() {
	defer close(n.done)
	_ = n.link.Receive(func(p []byte) {
		if martian(p) {
			return
		}
		if v := n.taps.inbound(p); v != refused {
			n.deliver(p, v != unread)
		}
	})
}

// martian reports whether a packet is from or to a loopback address, which no link may bring: RFC 1122, section
// 3.2.1.3, and RFC 4291, section 2.5.3. gVisor drops those too, but writes to standard error about it, in a log that
// nobody can turn off.
func martian(p []byte) bool {
	var from, to netip.Addr
	switch {
	case header.IPVersion(p) == header.IPv4Version && len(p) >= header.IPv4MinimumSize:
		from, to = netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:]))
	case header.IPVersion(p) == header.IPv6Version && len(p) >= header.IPv6MinimumSize:
		from, to = netip.AddrFrom16([16]byte(p[8:])), netip.AddrFrom16([16]byte(p[24:]))
	}
	return from.IsLoopback() || to.IsLoopback()
}

// deliver gives TCP a packet. seen says that the taps have seen its segment.
func (n *nic) deliver(p []byte, seen bool) {
	n.mu.RLock()
	d := n.dispatcher
	n.mu.RUnlock()
	if d == nil || len(p) == 0 {
		return
	}
	protocol := header.IPv4ProtocolNumber
	if header.IPVersion(p) == header.IPv6Version {
		protocol = header.IPv6ProtocolNumber
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(p)})
	if seen {
		pkt.Hash = judged
	}
	d.DeliverNetworkPacket(protocol, pkt)
	pkt.DecRef()
}

// packets are buffers for one outgoing packet each.
type packets struct{ pool sync.Pool }

func (p *packets) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// WritePackets is stack.LinkWriter's: it runs with the lock of the connection that sends.
func (n *nic) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	b := n.taps.buffers.get()
	for _, pkt := range list.AsSlice() {
		*b = (*b)[:0]
		for _, s := range pkt.AsSlices() {
			*b = append(*b, s...)
		}
		if p := n.taps.outbound(*b); p != nil {
			n.link.Send(p)
		}
	}
	n.taps.buffers.pool.Put(b)
	return list.Len(), nil
}

// Attach is stack.NetworkLinkEndpoint's.
func (n *nic) Attach(d stack.NetworkDispatcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dispatcher = d
}

// IsAttached is stack.NetworkLinkEndpoint's.
func (n *nic) IsAttached() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.dispatcher != nil
}

// MTU is stack.NetworkLinkEndpoint's.
func (n *nic) MTU() uint32 { return n.mtu.Load() }

// SetMTU is stack.NetworkLinkEndpoint's.
func (n *nic) SetMTU(mtu uint32) { n.mtu.Store(mtu) }

// Wait is stack.NetworkLinkEndpoint's.
func (n *nic) Wait() { <-n.done }

// Close is stack.NetworkLinkEndpoint's.
func (n *nic) Close() { _ = n.link.Close() }

// The rest of a stack.LinkEndpoint: there is no link layer.

// MaxHeaderLength is stack.NetworkLinkEndpoint's.
func (n *nic) MaxHeaderLength() uint16 { return 0 }

// LinkAddress is stack.NetworkLinkEndpoint's.
func (n *nic) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress is stack.NetworkLinkEndpoint's.
func (n *nic) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities is stack.NetworkLinkEndpoint's.
func (n *nic) Capabilities() stack.LinkEndpointCapabilities { return 0 }

// ARPHardwareType is stack.NetworkLinkEndpoint's.
func (n *nic) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader is stack.NetworkLinkEndpoint's.
func (n *nic) AddHeader(*stack.PacketBuffer) {}

// ParseHeader is stack.NetworkLinkEndpoint's.
func (n *nic) ParseHeader(*stack.PacketBuffer) bool { return true }

// SetOnCloseAction is stack.NetworkLinkEndpoint's.
func (n *nic) SetOnCloseAction(func()) {}

// A Link carries the IP packets of one [Stack]: IPv4 and IPv6 packets without any header of a link layer.
type Link interface {
	// MTU returns the bytes of the largest packet that the link carries.
	MTU() int
	// Send takes a packet to be sent. It neither waits for the peer nor calls anything of a Stack: it is called with
	// locks of TCP's held. Any number of goroutines call it at once. It keeps nothing of the packet. A packet that
	// cannot be sent is lost.
	Send(packet []byte)
	// Receive calls deliver for each packet that arrives, one after the other, until the link is closed; deliver keeps
	// nothing. The error says why there will be no more packets, and is nil after Close.
	Receive(deliver func(packet []byte)) error
	// Close ends Receive. It may be called more than once.
	Close() error
}
