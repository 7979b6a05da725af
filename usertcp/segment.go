package usertcp

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A segment is a packet that is one TCP segment.
type segment struct {
	from, to netip.AddrPort
	tcp      header.TCP // with its payload
	seq, ack uint32
	flags    header.TCPFlags
	payload  []byte
}

// parseSegment reads an IP packet. ok is false for what is not TCP, or not as simple as what the tap looks at: one
// whole segment, without IP options or extension headers. Of sums only that of the IP header is checked.
func parseSegment(packet []byte) (s segment, ok bool) {
	var from, to tcpip.Address
	switch header.IPVersion(packet) {
	case header.IPv4Version:
		ip := header.IPv4(packet)
		if !ip.IsValid(len(packet)) || !ip.IsChecksumValid() || ip.HeaderLength() != header.IPv4MinimumSize ||
			ip.More() || ip.FragmentOffset() != 0 || ip.TransportProtocol() != header.TCPProtocolNumber {
			return s, false
		}
		from, to, s.tcp = ip.SourceAddress(), ip.DestinationAddress(), ip.Payload()
	case header.IPv6Version:
		ip := header.IPv6(packet)
		if !ip.IsValid(len(packet)) || ip.TransportProtocol() != header.TCPProtocolNumber {
			return s, false
		}
		from, to, s.tcp = ip.SourceAddress(), ip.DestinationAddress(), ip.Payload()
	default:
		return s, false
	}
	return s, s.parseTCP(from, to)
}

func (s *segment) parseTCP(from, to tcpip.Address) bool {
	if len(s.tcp) < header.TCPMinimumSize {
		return false
	}
	offset := int(s.tcp.DataOffset())
	if offset < header.TCPMinimumSize || offset > len(s.tcp) {
		return false
	}
	s.from = addrPort(tcpip.FullAddress{Addr: from, Port: s.tcp.SourcePort()})
	s.to = addrPort(tcpip.FullAddress{Addr: to, Port: s.tcp.DestinationPort()})
	s.seq, s.ack, s.flags = s.tcp.SequenceNumber(), s.tcp.AckNumber(), s.tcp.Flags()
	s.payload = s.tcp[offset:]
	return true
}

// has reports whether any of the flags are set.
func (s *segment) has(f header.TCPFlags) bool { return s.flags&f != 0 }

// endSeq returns the sequence number after the last of the segment.
func (s *segment) endSeq() uint32 {
	n := s.seq + uint32(len(s.payload))
	if s.has(header.TCPFlagSyn) {
		n++
	}
	if s.has(header.TCPFlagFin) {
		n++
	}
	return n
}

// intact checks TCP's checksum.
func (s *segment) intact() bool {
	from, to := tcpip.AddrFromSlice(s.from.Addr().AsSlice()), tcpip.AddrFromSlice(s.to.Addr().AsSlice())
	pseudo := header.PseudoHeaderChecksum(header.TCPProtocolNumber, from, to, uint16(len(s.tcp)))
	return checksum.Checksum(s.tcp, pseudo) == 0xffff
}

// syn returns the options of a SYN.
func (s *segment) syn() header.TCPSynOptions {
	return header.ParseSynOptions(s.tcp.Options(), s.has(header.TCPFlagAck))
}

// before reports whether a sequence number lies before another (RFC 9293, section 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }
