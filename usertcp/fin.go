package usertcp

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// A parting has what is not acknowledged sent again where gVisor's TCP waits for that without a timer: after a recovery
// by selective acknowledgements it may count nothing as outstanding, a FIN above all. If that, what is in front of it
// or its acknowledgement is lost then, TCP sends nothing any more.
type parting struct {
	vigil
	begin sync.Once
	every time.Duration
	sent  uint64 // segments of ours, at the last look
}

// firstFIN is after how long a silence the FIN is sent again. The time doubles with each.
//
// RFC 6298, section 2.1: "Until a round-trip time (RTT) measurement has been made [...] the sender SHOULD set RTO <- 1
// second".
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
		p.resendUnacked(c)
		p.again(c)
	})
}

// resendUnacked has what is not acknowledged sent again, if nothing was sent since the last call. It reports whether it
// has.
func (p *parting) resendUnacked(c *Conn) bool {
	una := c.AckProgress()
	packet, sent := c.flow.last.fin(una)
	silent := sent == p.sent
	p.sent = sent
	switch {
	case !silent:
		return false
	case packet != nil:
		c.stack.taps.send(packet)
	default:
		packet = c.flow.last.received(una, c.flow.grants())
		if packet == nil || !c.flow.gaps.due.Load() {
			return false
		}
		c.stack.nic.deliver(packet, true)
	}
	p.every *= 2
	return true
}

// A lastPacket is the last of a flow's own, except for a SYN or RST.
type lastPacket struct {
	seen atomic.Bool // the FIN

	mu        sync.Mutex
	seq       uint32 // of the FIN
	sent      uint64 // segments since then, acknowledgements alone apart
	packet    []byte // the headers of the last, or nil
	tcpHeader int    // bytes of TCP's
}

// outbound takes note of a packet of ours.
func (l *lastPacket) outbound(packet []byte, s *segment) {
	fin := s.has(header.TCPFlagFin)
	l.mu.Lock()
	defer l.mu.Unlock()
	if fin || l.seen.Load() && len(s.payload) > 0 {
		l.sent++
	}
	if fin {
		l.seen.Store(true)
		l.seq = s.endSeq() - 1
	}
	if n := ipLength(s) + len(s.tcp); len(packet) == n && !s.has(header.TCPFlagRst) {
		l.packet, l.tcpHeader = append(l.packet[:0], packet[:n-len(s.payload)]...), len(s.tcp)-len(s.payload)
	}
}

// headers returns the headers of the last packet, as those of one without payload, or nil.
func (l *lastPacket) headers() []byte {
	if l.packet == nil {
		return nil
	}
	packet := bytes.Clone(l.packet)
	lengthen(packet, l.tcpHeader)
	return packet
}

// fin returns the FIN, as of now, if everything in front of it is acknowledged and it is not, and how many segments
// were sent.
func (l *lastPacket) fin(una uint32) ([]byte, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.Load() || una != l.seq || l.packet == nil {
		return nil, l.sent
	}
	packet := l.headers()
	s, _ := parseSegment(packet)
	s.tcp.SetSequenceNumber(l.seq)
	s.tcp.SetFlags(uint8(header.TCPFlagFin | header.TCPFlagAck))
	lengthen(packet, len(s.tcp))
	return packet, l.sent
}

// received returns a segment for our TCP, as if the peer had our FIN and lacked what is in front of it, or nil where
// that is not so: TCP takes the bytes for lost then, and sends them with its timer on. What it takes for received, and
// the peer may lack, is the FIN, which look sends.
//
// RFC 2018, section 4: "The SACK option is advisory": TCP keeps the FIN until it is acknowledged.
func (l *lastPacket) received(una uint32, window uint16) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.Load() || !before(una, l.seq) || l.packet == nil {
		return nil
	}
	return withSACK(l.answer(una, window), []header.SACKBlock{{Start: seqnum.Value(l.seq),
		End: seqnum.Value(l.seq + 1)}})
}

// echoed returns the timestamp of an answer to a segment, if that has one.
func echoed(tcp header.TCP) []byte {
	o := header.ParseTCPOptions(tcp.Options())
	if !o.TS {
		return nil
	}
	option := make([]byte, 2+header.TCPOptionTSLength)
	option[0], option[1] = header.TCPOptionNOP, header.TCPOptionNOP
	header.EncodeTSOption(o.TSEcr, o.TSVal, option[2:])
	return option
}

// swapAddresses exchanges the addresses of a packet.
func swapAddresses(packet []byte) {
	if header.IPVersion(packet) == header.IPv4Version {
		ip := header.IPv4(packet)
		from, to := ip.SourceAddress(), ip.DestinationAddress()
		ip.SetSourceAddress(to)
		ip.SetDestinationAddress(from)
		return
	}
	ip := header.IPv6(packet)
	from, to := ip.SourceAddress(), ip.DestinationAddress()
	ip.SetSourceAddress(to)
	ip.SetDestinationAddress(from)
}
