package usertcp

import (
	"bytes"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A protocol is what gVisor's stack asks of its TCP.
type protocol interface {
	stack.TransportProtocol
	stack.SendBufSizeProto
	QueuePacket(stack.TransportEndpoint, stack.TransportEndpointID, *stack.PacketBuffer)
}

// A guardedTCP is gVisor's TCP behind the taps, also for what they cannot read at the link: there a segment may be in
// fragments, or behind options of IP.
type guardedTCP struct {
	protocol
	taps *taps
}

// guarded returns what makes a TCP with the taps in front of it.
func (t *taps) guarded(factory stack.TransportProtocolFactory) stack.TransportProtocolFactory {
	return func(s *stack.Stack) stack.TransportProtocol {
		return &guardedTCP{factory(s).(protocol), t}
	}
}

// judged marks a packet whose segment the taps have seen, as its Hash, which only outgoing ones have.
const judged = 1

// QueuePacket is called for each segment, with the connection that it is for.
func (g *guardedTCP) QueuePacket(ep stack.TransportEndpoint, id stack.TransportEndpointID, pkt *stack.PacketBuffer) {
	if pkt.Hash == judged || !g.refuses(id, pkt) {
		g.protocol.QueuePacket(ep, id, pkt)
	}
}

func (g *guardedTCP) refuses(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	whole := append(bytes.Clone(pkt.TransportHeader().Slice()), pkt.Data().AsRange().ToSlice()...)
	return g.taps.refusesWhole(id.RemoteAddress, id.LocalAddress, whole)
}
