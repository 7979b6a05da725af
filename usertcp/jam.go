package usertcp

import (
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// jammed reports whether TCP would send nothing any more. gVisor's cubic may take its congestion window to nothing
// where that is small, and an acknowledgement covers several segments: then nothing is sent, so that nothing is
// acknowledged, and no timer runs.
func jammed(s *tcp.TCPSenderState) bool {
	return s.SndCwnd <= 0 && s.SndUna == s.SndNxt && s.SndWnd > 0
}

// unjam has TCP believe that the peer has closed its window. It goes on as it does then, by a time-out, which sets the
// congestion window to one segment, and by asking the peer, whose answer opens the window again.
func (c *Conn) unjam() {
	if packet := c.flow.last.shut(c.AckProgress()); packet != nil {
		c.stack.nic.deliver(packet, true)
	}
}

// shut returns a segment for our TCP that closes its window, or nil if it has sent nothing.
func (l *lastPacket) shut(una uint32) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.packet == nil {
		return nil
	}
	return l.answer(una, 0)
}

// answer returns an acknowledgement of our last packet for our TCP, as the peer would send it.
func (l *lastPacket) answer(una uint32, window uint16) []byte {
	packet := l.headers()
	s, _ := parseSegment(packet)
	answer := append(packet[:ipLength(&s)+header.TCPMinimumSize], echoed(s.tcp)...)
	swapAddresses(answer)
	tcp := header.TCP(answer[ipLength(&s):])
	tcp.SetSourcePort(s.to.Port())
	tcp.SetDestinationPort(s.from.Port())
	tcp.SetSequenceNumber(s.ack)
	tcp.SetAckNumber(una)
	tcp.SetFlags(uint8(header.TCPFlagAck))
	tcp.SetWindowSize(window)
	lengthen(answer, len(tcp))
	return answer
}
