package usertcp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// assurances is how often our last acknowledgement, that of the peer's FIN and of what is in front of it, goes once
// more: in TIME-WAIT nobody knows whether the peer has it. lowerlayer.AssurancePause says why that many, and how far
// apart.
//
// RFC 9293, section 3.6.1: "When a connection is closed actively, it MUST linger in the TIME-WAIT state for a time
// 2xMSL".
const assurances = 3

// assure tells the peer several times that its half has come. It returns when the last of it has left, or the Stack
// ends. No other state than TIME-WAIT needs that: who has acknowledged a FIN that came after its own has what that
// acknowledged.
func (c *Conn) assure(state tcp.EndpointState) {
	defer c.removeFromStack()
	if state != tcp.StateTimeWait || c.flow == nil {
		return
	}
	for range assurances {
		select {
		case <-time.After(lowerlayer.AssurancePause(time.Duration(c.flow.smooth.Load()))):
		case <-c.stack.closed:
			return
		}
		if packet := c.flow.lastACK(); packet != nil {
			c.stack.taps.send(packet)
		}
	}
}

// lastACK returns an acknowledgement of all that has come, after our FIN, or nil if there was no FIN.
func (f *flow) lastACK() []byte {
	f.mu.Lock()
	next := f.rcvNxt
	f.mu.Unlock()
	return f.last.acknowledging(next)
}

// acknowledging returns our last packet as an acknowledgement alone, after our FIN, or nil if there was no FIN.
func (l *lastPacket) acknowledging(next uint32) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.Load() || l.packet == nil {
		return nil
	}
	packet := l.headers()
	s, _ := parseSegment(packet)
	s.tcp.SetSequenceNumber(l.seq + 1)
	s.tcp.SetAckNumber(next)
	s.tcp.SetFlags(uint8(header.TCPFlagAck))
	lengthen(packet, len(s.tcp))
	return packet
}
