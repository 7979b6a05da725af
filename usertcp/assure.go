package usertcp

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// In TIME-WAIT nobody knows whether the peer has our last acknowledgement: that of its FIN, and of what is in front of it. TCP
// would answer what the peer sends again where it was lost; here nobody does once the program has ended with its Stack. So before
// that may be, the acknowledgement goes several times more: all of them are lost less often than once in a million times on a
// path that loses 3 % of the packets. They are spaced, as what is lost on a path is often lost together, by half a round
// trip, and not so far that who closes would notice.
//
// RFC 9293, section 3.6.1: "When a connection is closed actively, it MUST linger in the TIME-WAIT state for a time 2xMSL".
const (
	assurances = 3
	maxPause   = 100 * time.Millisecond
)

// assure tells the peer several times that its half has come. It returns when the last of it has left, or the Stack ends. No other
// state than TIME-WAIT needs that: who has acknowledged a FIN that came after its own has what that acknowledged.
func (c *Conn) assure(state tcp.EndpointState) {
	defer c.dismiss()
	if state != tcp.StateTimeWait || c.flow == nil {
		return
	}
	for range assurances {
		select {
		case <-time.After(c.flow.pause()):
		case <-c.stack.closed:
			return
		}
		if packet := c.flow.lastACK(); packet != nil {
			c.stack.taps.send(packet)
		}
	}
}

// pause is half a round trip, if that is known and short.
func (f *flow) pause() time.Duration {
	if rtt := time.Duration(f.smooth.Load()); rtt > 0 {
		return min(rtt/2, maxPause)
	}
	return maxPause
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
