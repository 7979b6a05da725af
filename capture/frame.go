package capture

import "encoding/binary"

// frame makes a packet with the first n octets in f.w.frame, and returns the octets
// after them.
func (f *Flow) frame(d Dir, flags Flags, octets [][]byte, n int) (rest [][]byte) {
	b := f.w.frame[:0]
	if f.w.cfg.Ethernet {
		b = f.appendEthernet(b, d)
	}
	ip := len(b)
	opts := f.options(flags)
	b = f.appendIP(b, d, tcpLen+len(opts)+n)
	tcp := len(b)
	b = f.appendTCP(b, d, flags, opts)
	b, rest = appendFirst(b, octets, n)
	f.checksums(b[ip:tcp], b[tcp:])
	f.w.frame = b
	return rest
}

// appendFirst appends the first n octets of several slices, and returns what
// comes after them. It uses the slice of slices.
func appendFirst(b []byte, octets [][]byte, n int) (all []byte, rest [][]byte) {
	for n > 0 {
		m := min(n, len(octets[0]))
		b = append(b, octets[0][:m]...)
		n -= m
		if octets[0] = octets[0][m:]; len(octets[0]) == 0 {
			octets = octets[1:]
		}
	}
	return b, octets
}

// appendEthernet appends a header whose addresses are made up: the client's is
// 02:00:00:00:00:01.
func (f *Flow) appendEthernet(b []byte, d Dir) []byte {
	b = append(b, 2, 0, 0, 0, 0, byte(2-d), 2, 0, 0, 0, 0, byte(1+d))
	if f.ends[d].Addr().Is4() {
		return binary.BigEndian.AppendUint16(b, etherIPv4)
	}
	return binary.BigEndian.AppendUint16(b, etherIPv6)
}

// appendIP appends a header in front of n octets; the checksum follows later.
func (f *Flow) appendIP(b []byte, d Dir, n int) []byte {
	from, to := f.ends[d].Addr(), f.ends[d.Peer()].Addr()
	if from.Is4() {
		h := &f.halves[d]
		h.packets++
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(ipv4Len+n))
		b = binary.BigEndian.AppendUint16(b, h.packets)
		b = append(b, 0x40, 0, 64, protoTCP, 0, 0) // not to be fragmented
	} else {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
		b = append(b, protoTCP, 64)
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

// checksums fills in those of a packet (RFC 9293, section 3.1).
func (f *Flow) checksums(ip, segment []byte) {
	sum := uint64(protoTCP + len(segment))
	if len(ip) == ipv4Len {
		binary.BigEndian.PutUint16(ip[10:], checksum(onesSum(0, ip)))
		sum = onesSum(sum, ip[12:])
	} else {
		sum = onesSum(sum, ip[8:])
	}
	binary.BigEndian.PutUint16(segment[16:], checksum(onesSum(sum, segment)))
}
