package capture

import "encoding/binary"

const (
	icmpLen   = 8 // of what ICMP has in front of the packet that it quotes
	quotedLen = 8 // of a quoted TCP header: at least the ports and the sequence number
)

// A PathMTU is what a router has said of the path of a direction.
type PathMTU struct {
	// MTU is the length in bytes of the largest IP packet that the router can forward; 0 if it
	// did not say (RFC 1191, section 5).
	MTU int
	// Packet is the router's, of number 0 if none has said anything.
	Packet Stamp
}

// tooBig takes note of ICMP by which a router tells a sender that a packet of a connection was
// too large for the next link. Like TCP, it believes only what quotes bytes that are under way
// (RFC 5927, section 4.1).
func (t *Tracker) tooBig(p *Packet) {
	d, why := p.datagram(onlyICMP)
	if why != 0 || len(d.segment) < icmpLen {
		return
	}
	mtu, ok := d.nextMTU()
	if !ok {
		return
	}
	quoted, why := datagramOf(d.segment[icmpLen:], len(d.segment)-icmpLen, onlyTCP)
	if why != 0 || len(quoted.segment) < quotedLen || !d.tuple.meets(&quoted.tuple) {
		return
	}
	if h := t.quoted(&quoted); h != nil {
		h.Path = PathMTU{mtu, t.now}
	}
}

// nextMTU returns what ICMP says that the next link takes, if it says that a packet was too large
// (RFC 1191, section 4; RFC 4443, section 3.2).
func (d *datagram) nextMTU() (mtu int, ok bool) {
	const unreachable, needsFragments, packetTooBig = 3, 4, 2
	b, v6 := d.segment, d.tuple.ports&1 != 0
	switch {
	case v6 && d.proto == protoICMPv6 && b[0] == packetTooBig:
		return int(min(binary.BigEndian.Uint32(b[4:]), 1<<16)), true // 0 is none
	case !v6 && d.proto == protoICMP && b[0] == unreachable && b[1] == needsFragments:
		return int(binary.BigEndian.Uint16(b[6:])), true
	}
	return 0, false
}

// quoted returns the direction that a packet is of, nil if its first byte is not under way.
func (t *Tracker) quoted(d *datagram) *Half {
	b := d.segment
	h := tcpHeader{tuple: d.tuple}
	h.tuple.setPorts(binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]))
	h.swapped = h.tuple.order()
	c := t.table[h.tuple]
	if c == nil {
		return nil
	}
	half := &c.Halves[c.dir(&h)]
	at := half.offset(binary.BigEndian.Uint32(b[4:]))
	if !half.started || at < int64(half.acked) || at >= int64(half.end) {
		return nil
	}
	return half
}

// meets reports whether the packet goes to where the other one comes from.
func (t *tuple) meets(other *tuple) bool { return t.bHigh == other.aHigh && t.bLow == other.aLow }
