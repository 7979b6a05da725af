package capture

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// frame makes a packet with the first n bytes in f.w.frame, and returns the bytes
// after them.
func (f *Flow) frame(d Dir, flags Flags, data [][]byte, n int) (rest [][]byte) {
	b := f.w.frame[:0]
	if f.w.cfg.Ethernet {
		b = appendEthernet(b, d, f.ends[d].Addr().Is4())
	}
	ip := len(b)
	opts := f.options(flags)
	from, to := f.ends[d].Addr(), f.ends[d.Peer()].Addr()
	f.halves[d].packets++
	b = appendIP(b, from, to, protoTCP, f.halves[d].packets, tcpLen+len(opts)+n)
	tcp := len(b)
	b = f.appendTCP(b, d, flags, opts)
	b, rest = appendFirst(b, data, n)
	sealIPv4(b[ip:tcp])
	binary.BigEndian.PutUint16(b[tcp+16:], transportSum(b[ip:tcp], protoTCP, b[tcp:])) // RFC 9293, section 3.1
	f.w.frame = b
	return rest
}

// appendFirst appends the first n bytes of several slices, and returns what
// comes after them. It uses the slice of slices.
func appendFirst(b []byte, data [][]byte, n int) (all []byte, rest [][]byte) {
	for n > 0 {
		m := min(n, len(data[0]))
		b = append(b, data[0][:m]...)
		n -= m
		if data[0] = data[0][m:]; len(data[0]) == 0 {
			data = data[1:]
		}
	}
	return b, data
}

// appendEthernet appends a header whose addresses are made up: that of the end whose bytes go forward is
// 02:00:00:00:00:01.
func appendEthernet(b []byte, d Dir, ipv4 bool) []byte {
	b = append(b, 2, 0, 0, 0, 0, byte(2-d), 2, 0, 0, 0, 0, byte(1+d))
	if ipv4 {
		return binary.BigEndian.AppendUint16(b, etherIPv4)
	}
	return binary.BigEndian.AppendUint16(b, etherIPv6)
}

// appendIP appends a header in front of n bytes; the checksum follows later. id is IPv4's identification.
func appendIP(b []byte, from, to netip.Addr, proto byte, id uint16, n int) []byte {
	if from.Is4() {
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(ipv4Len+n))
		b = binary.BigEndian.AppendUint16(b, id)
		b = append(b, 0x40, 0, 64, proto, 0, 0) // not to be fragmented
	} else {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
		b = append(b, proto, 64)
	}
	b = append(b, from.AsSlice()...)
	return append(b, to.AsSlice()...)
}

// options are those of a SYN.
func (f *Flow) options(flags Flags) []byte {
	if !flags.Has(SYN) {
		return nil
	}
	mss := uint16(f.w.cfg.MSS)
	return []byte{optionMSS, 4, byte(mss >> 8), byte(mss), optionNop, optionWindowScale, 3, flowScale}
}

// appendTCP appends a header; the checksum follows later.
func (f *Flow) appendTCP(b []byte, d Dir, flags Flags, opts []byte) []byte {
	ack := uint32(0)
	if flags.Has(ACK) {
		ack = f.halves[d.Peer()].seq
	}
	b = binary.BigEndian.AppendUint16(b, f.ends[d].Port())
	b = binary.BigEndian.AppendUint16(b, f.ends[d.Peer()].Port())
	b = binary.BigEndian.AppendUint32(b, f.halves[d].seq)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, byte(tcpLen+len(opts))<<2, byte(flags))
	b = binary.BigEndian.AppendUint16(b, flowWindow)
	b = append(b, 0, 0, 0, 0)
	return append(b, opts...)
}

// sealIPv4 fills in the checksum of a header, if it is one of IPv4.
func sealIPv4(ip []byte) {
	if len(ip) == ipv4Len {
		binary.BigEndian.PutUint16(ip[10:], checksum(onesSum(0, ip)))
	}
}

// transportSum is the checksum of what follows an IP header, with the pseudo header of the latter.
func transportSum(ip []byte, proto byte, segment []byte) uint16 {
	addresses := ip[8:]
	if len(ip) == ipv4Len {
		addresses = ip[12:]
	}
	return checksum(onesSum(onesSum(uint64(int(proto)+len(segment)), addresses), segment))
}

// onesSum adds bytes to a sum in the ones' complement of 64 bits. b has an even
// number of bytes, or is the last to be added.
func onesSum(sum uint64, b []byte) uint64 {
	var carry uint64
	for ; len(b) >= 8; b = b[8:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
	}
	var last [8]byte
	copy(last[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(last[:]), carry)
	sum, carry = bits.Add64(sum, 0, carry)
	return sum + carry
}

// checksum is the Internet checksum (RFC 1071) of what was added.
func checksum(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
