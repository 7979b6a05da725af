package capture

import "encoding/binary"

// maxNested is how many headers of IP may follow one another.
const maxNested = 8

// isTunnel reports whether a protocol above IP may have another packet in it.
func isTunnel(proto byte) bool {
	switch proto {
	case protoIPv4, protoIPv6, protoGRE, protoEtherIP, protoMPLS, protoEthernet, protoUDP:
		return true
	}
	return false
}

// inside returns the IP packet in a tunnel; SkipNotTCP if there is none.
func (d *datagram) inside() (ip []byte, why Skip) {
	b := d.segment
	switch d.proto {
	case protoIPv4, protoIPv6:
		return b, 0
	case protoGRE:
		return gre(b)
	case protoEthernet:
		return ethernet(b, ethernetLen-2, ethernetLen)
	case protoEtherIP:
		return after(b, 2, etherTEB)
	case protoMPLS:
		return mpls(b)
	case protoUDP:
		return udpTunnel(b)
	}
	return nil, SkipNotTCP
}

// after reads what follows n bytes, by its EtherType.
func after(b []byte, n int, kind uint16) (ip []byte, why Skip) {
	if len(b) < n {
		return nil, SkipShort
	}
	return etherType(kind, b[n:])
}

// etherType looks past tags and labels in front of IP.
func etherType(kind uint16, b []byte) (ip []byte, why Skip) {
	for kind == etherVLAN || kind == etherQinQ || kind == etherOld {
		if len(b) < vlanLen {
			return nil, SkipShort
		}
		kind, b = binary.BigEndian.Uint16(b[2:]), b[vlanLen:]
	}
	const snap = "\xaa\xaa\x03\x00\x00\x00" // IEEE 802.2 with an EtherType: RFC 1042
	if kind <= maxLLC && len(b) >= len(snap)+2 && string(b[:len(snap)]) == snap {
		kind, b = binary.BigEndian.Uint16(b[len(snap):]), b[len(snap)+2:]
	}
	switch kind {
	case etherIPv4, etherIPv6:
		return b, 0
	case etherMPLS, etherMPLSUp:
		return mpls(b)
	case etherPPPoE:
		return pppoe(b)
	case etherPBB:
		return after(b, 4, etherTEB)
	case etherTEB:
		return ethernet(b, ethernetLen-2, ethernetLen)
	case etherMACsec:
		return nil, SkipEncrypted
	case etherVNTag, etherETag, etherNSH:
		return nil, SkipTunnel
	}
	return nil, SkipNotIP
}

// mpls looks past a stack of labels (RFC 3032, section 2.1). What is below tells itself by its first four bits
// (RFC 4928, section 2): IP by its version, Ethernet by the zeros of a control word (RFC 4385, section 3).
func mpls(b []byte) (ip []byte, why Skip) {
	const labelLen, bottom = 4, 1
	for {
		if len(b) <= labelLen {
			return nil, SkipShort
		}
		last := b[2]&bottom != 0
		if b = b[labelLen:]; last {
			break
		}
	}
	switch b[0] >> 4 {
	case 4, 6:
		return b, 0
	case 0:
		return after(b, 4, etherTEB)
	}
	return after(b, 0, etherTEB)
}

// pppoe looks past the headers of PPP over Ethernet (RFC 2516, section 4).
func pppoe(b []byte) (ip []byte, why Skip) {
	const headerLen, pppIPv4, pppIPv6, pppCompressed, pppEncrypted = 8, 0x0021, 0x0057, 0x00fd, 0x0053
	if len(b) < headerLen {
		return nil, SkipShort
	}
	switch binary.BigEndian.Uint16(b[6:]) {
	case pppIPv4, pppIPv6:
		return b[headerLen:], 0
	case pppCompressed:
		return nil, SkipTunnel
	case pppEncrypted:
		return nil, SkipEncrypted
	}
	return nil, SkipNotIP
}

// Flags of GRE (RFC 2784, section 2; RFC 2890, section 2).
const (
	greChecksum = 0x8000
	greRouting  = 0x4000
	greKey      = 0x2000
	greSequence = 0x1000
	greVersion  = 0x0007
)

// What GRE has in it beside EtherTypes.
const (
	erspan2 = 0x88be
	erspan3 = 0x22eb
)

// gre looks past GRE, and past the header of a mirrored packet in it (ERSPAN).
func gre(b []byte) (ip []byte, why Skip) {
	if len(b) < 4 {
		return nil, SkipShort
	}
	flags, kind := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if flags&(greRouting|greVersion) != 0 {
		return nil, SkipTunnel
	}
	n := 4
	for _, option := range [...]uint16{greChecksum, greKey, greSequence} {
		if flags&option != 0 {
			n += 4
		}
	}
	switch kind {
	case erspan2:
		if flags&greSequence != 0 { // else it is the first version, which has no header
			n += 8
		}
		return after(b, n, etherTEB)
	case erspan3:
		const headerLen, more = 12, 1
		if len(b) >= n+headerLen && b[n+headerLen-1]&more != 0 {
			n += 8
		}
		return after(b, n+headerLen, etherTEB)
	}
	return after(b, n, kind)
}

// Ports of UDP that tunnels have.
const (
	portL2TP      = 1701
	portGTP       = 2152
	portESP       = 4500 // RFC 3948
	portVXLAN     = 4789 // RFC 7348
	portVXLANGPE  = 4790
	portGENEVE    = 6081  // RFC 8926
	portOldVXLAN  = 8472  // Linux's, where nothing else is asked for
	portWireGuard = 51820 // by custom
)

// udpTunnel returns the IP packet in a UDP datagram that is a tunnel by its port and by its form; SkipNotTCP if it
// is none.
func udpTunnel(b []byte) (ip []byte, why Skip) {
	const most = 8
	if len(b) < udpLen+most {
		return nil, SkipNotTCP
	}
	from, to := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	b = b[udpLen:]
	switch to {
	case portVXLAN, portOldVXLAN:
		return vxlan(b)
	case portVXLANGPE:
		return vxlanGPE(b)
	case portGENEVE:
		return geneve(b)
	case portGTP:
		if b[0]>>4 == 3 && b[1] == 0xff { // a packet of a user's
			return nil, SkipTunnel
		}
	}
	switch {
	case to == portL2TP && b[0]&0xc8 == 0 && b[1]&0x0f == 2: // data of version 2
		return nil, SkipTunnel
	case (to == portESP || from == portESP) && [4]byte(b) != [4]byte{}:
		return nil, SkipEncrypted
	case (to == portWireGuard || from == portWireGuard) && [4]byte(b) == [4]byte{4}:
		return nil, SkipEncrypted
	}
	return nil, SkipNotTCP
}

// vxlan looks past the header of RFC 7348, section 5, also with the group policy that Linux may add.
func vxlan(b []byte) (ip []byte, why Skip) {
	const known, policy = 0x08, 0x80
	if b[0]&^policy != known {
		return nil, SkipNotTCP
	}
	return after(b, 8, etherTEB)
}

// vxlanGPE looks past the same with the protocol that follows (draft-ietf-nvo3-vxlan-gpe, section 3).
func vxlanGPE(b []byte) (ip []byte, why Skip) {
	const known = 0x0c
	if b[0]&known != known {
		return nil, SkipNotTCP
	}
	switch b[3] {
	case 1:
		return after(b, 8, etherIPv4)
	case 2:
		return after(b, 8, etherIPv6)
	case 3:
		return after(b, 8, etherTEB)
	}
	return nil, SkipTunnel
}

// geneve looks past the header of RFC 8926, section 3.4.
func geneve(b []byte) (ip []byte, why Skip) {
	if b[0]>>6 != 0 {
		return nil, SkipNotTCP
	}
	return after(b, 8+int(b[0]&0x3f)*4, binary.BigEndian.Uint16(b[2:]))
}
