package usertcp

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A parting has our FIN sent again where gVisor's TCP waits for its acknowledgement without a timer: after a recovery by selective
// acknowledgements it takes a FIN for nothing that is outstanding. If that or its acknowledgement is lost then, TCP sends nothing any more.
type parting struct {
	vigil
	begin sync.Once
	every time.Duration
	sent  uint64 // packets of ours, at the last look
}

// firstFIN is after how long a silence the FIN is sent again. The time doubles with each.
//
// RFC 6298, section 2.1: "Until a round-trip time (RTT) measurement has been made [...] the sender SHOULD set RTO <- 1 second".
const firstFIN = time.Second

// wait begins to look at a connection that is going to send its FIN.
func (p *parting) wait(c *Conn) {
	p.begin.Do(func() {
		p.every = firstFIN
		p.again(c)
	})
}

func (p *parting) again(c *Conn) {
	p.after(p.every, c, func() {
		p.look(c)
		p.again(c)
	})
}

// look sends the FIN again if it is all that is not acknowledged, and nothing was sent since the last look. It reports whether it has.
func (p *parting) look(c *Conn) bool {
	packet, sent := c.flow.last.fin(c.Acknowledged())
	silent := sent == p.sent
	p.sent = sent
	if packet == nil || !silent {
		return false
	}
	p.every *= 2
	c.stack.taps.send(packet)
	return true
}

// A lastPacket is the last of a flow's own from its FIN on.
type lastPacket struct {
	seen atomic.Bool // the FIN

	mu     sync.Mutex
	seq    uint32 // of the FIN
	sent   uint64 // packets since then
	packet []byte // the last without payload, or nil
}

// outbound takes note of a packet of ours.
func (l *lastPacket) outbound(packet []byte, s *segment) {
	fin := s.has(header.TCPFlagFin)
	if !fin && !l.seen.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if fin {
		l.seen.Store(true)
		l.seq = s.end() - 1
	}
	if len(s.payload) == 0 && len(packet) == ipLength(s)+len(s.tcp) && !s.has(header.TCPFlagRst) {
		l.packet = append(l.packet[:0], packet...)
	}
}

// fin returns the FIN, as of now, if everything in front of it is acknowledged and it is not, and how many packets were sent.
func (l *lastPacket) fin(una uint32) ([]byte, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.Load() || una != l.seq || l.packet == nil {
		return nil, l.sent
	}
	packet := bytes.Clone(l.packet)
	s, _ := parseSegment(packet)
	s.tcp.SetSequenceNumber(l.seq)
	s.tcp.SetFlags(uint8(header.TCPFlagFin | header.TCPFlagAck))
	lengthen(packet, len(s.tcp))
	return packet, l.sent
}
