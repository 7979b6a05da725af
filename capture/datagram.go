package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// maxDatagram is the most bytes that a UDP datagram carries, over IPv4 without options.
const maxDatagram = 65535 - ipv4Len - udpLen

// Packet adds an IP packet as it is, for a program that has a TCP/IP of its own. d matters only for the made-up
// addresses of Ethernet. A zero time is now, by the Writer's clock, so that packets of several goroutines are in order
// of time. The error is about a packet that is neither IPv4 nor IPv6, or comes from below.
func (w *Writer) Packet(d Dir, at time.Time, ip []byte) error {
	if len(ip) == 0 || ip[0]>>4 != 4 && ip[0]>>4 != 6 {
		return fmt.Errorf("capture: what has the length %d is no packet of IPv4 or IPv6", len(ip))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frame = append(w.startFrame(d, ip[0]>>4 == 4), ip...)
	w.write(w.time(at))
	return w.err
}

// Datagram adds a UDP datagram, with made-up headers of IP and UDP. A zero time is now, as for Packet. The error is
// about addresses that are not of one kind, or too many bytes, or comes from below.
func (w *Writer) Datagram(d Dir, from, to netip.AddrPort, at time.Time, data []byte) error {
	from, to = unmapped(from), unmapped(to)
	switch {
	case !from.IsValid() || !to.IsValid() || from.Addr().Is4() != to.Addr().Is4():
		return fmt.Errorf("capture: no datagram from %v to %v", from, to)
	case len(data) > maxDatagram:
		return fmt.Errorf("capture: a datagram of %d bytes, of %d at most", len(data), maxDatagram)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.startFrame(d, from.Addr().Is4())
	ip := len(b)
	// RFC 6864: nothing identifies what is no fragment
	b = appendIP(b, from.Addr(), to.Addr(), protoUDP, 0, udpLen+len(data))
	udp := len(b)
	b = appendUDP(b, from.Port(), to.Port(), data)
	sealIPv4(b[ip:udp])
	sum := transportSum(b[ip:udp], protoUDP, b[udp:])
	if sum == 0 { // RFC 768: zero says that there is none
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[udp+6:], sum)
	w.frame = b
	w.write(w.time(at))
	return w.err
}

// time is that of a packet.
func (w *Writer) time(at time.Time) time.Time {
	if at.IsZero() {
		return w.cfg.Now()
	}
	return at
}

// startFrame starts a frame in w.frame.
func (w *Writer) startFrame(d Dir, ipv4 bool) []byte {
	if w.cfg.Ethernet {
		return appendEthernet(w.frame[:0], d, ipv4)
	}
	return w.frame[:0]
}

// appendUDP appends a datagram; the checksum follows later.
func appendUDP(b []byte, from, to uint16, data []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(udpLen+len(data)))
	b = append(b, 0, 0)
	return append(b, data...)
}
