package capture

import (
	"encoding/binary"
	"hash/crc32"
)

// Lengths in octets.
const (
	udpLen         = 8
	sctpLen        = 12 // ports, verification tag, checksum
	chunkLen       = 4  // of a chunk's header
	dataChunkLen   = 12 // of a DATA chunk, after that
	initChunkLen   = 16 // of INIT and INIT ACK, after that, without parameters
	paramLen       = 4  // of a parameter's header
	abortCauseLen  = 4
	causeUserAbort = 12
	causeProtocol  = 13
)

// PortUDP is the UDP port of SCTP: RFC 6951, section 3.
const PortUDP = 9899

// The chunks of RFC 9260, section 3.2, that are looked at.
const (
	chunkData             = 0
	chunkInit             = 1
	chunkInitAck          = 2
	chunkSack             = 3
	chunkAbort            = 6
	chunkShutdown         = 7
	chunkCookieEcho       = 10
	chunkShutdownComplete = 14
)

// Flags of chunks.
const (
	flagTag       = 1 // ABORT, SHUTDOWN COMPLETE: the tag is the sender's own
	flagEnding    = 1 // DATA: the end of a message
	flagBeginning = 2
	flagUnordered = 4
)

// paramAdaptation is the Adaptation Layer Indication: RFC 5061, section 4.2.6.
const paramAdaptation = 0xc006

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An sctpPacket is what is known of a packet when its headers have been read.
type sctpPacket struct {
	key     associationKey
	swapped bool // the source is b of the tuple
	tag     uint32
	chunks  []byte // what was captured of them
	length  int    // of them in octets, as sent
	sure    bool   // of IP protocol 132, or with the right checksum
}

// An associationKey tells associations apart. One of IP protocol 132 has no UDP ports.
type associationKey struct {
	tuple tuple  // with the ports of SCTP
	udp   uint32 // of a and of b
}

// parse reads the headers of a packet down to SCTP's. It reports false for one that is
// none of SCTP, in UDP or not.
func (s *sctpPacket) parse(p *Packet) bool {
	ip, why := network(p.Link, p.Data)
	if why != 0 {
		return false
	}
	d, why := datagramOf(ip, p.wireLen()-(len(p.Data)-len(ip)), forSCTP)
	if why != 0 {
		return false
	}
	*s = sctpPacket{sure: d.proto == protoSCTP}
	var udp [2]uint16
	if d.proto == protoUDP {
		if len(d.segment) < udpLen {
			return false
		}
		udp = [2]uint16{binary.BigEndian.Uint16(d.segment), binary.BigEndian.Uint16(d.segment[2:])}
		if n := int(binary.BigEndian.Uint16(d.segment[4:])); n >= udpLen && n < d.length {
			d.length = n
			d.segment = d.segment[:min(n, len(d.segment))]
		}
		d.segment, d.length = d.segment[udpLen:], d.length-udpLen
	}
	return s.header(&d, udp)
}

// header reads SCTP's common header: RFC 9260, section 3.1.
func (s *sctpPacket) header(d *datagram, udp [2]uint16) bool {
	b := d.segment
	if len(b) < sctpLen+chunkLen {
		return false
	}
	s.key.tuple = d.tuple
	s.key.tuple.setPorts(binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]))
	if s.swapped = s.key.tuple.order(); s.swapped {
		udp[0], udp[1] = udp[1], udp[0]
	}
	s.key.udp = uint32(udp[0])<<16 | uint32(udp[1])
	s.tag = binary.BigEndian.Uint32(b[4:])
	s.chunks, s.length = b[sctpLen:], d.length-sctpLen
	s.sure = s.sure || len(b) == d.length && chained(s.chunks) && binary.LittleEndian.Uint32(b[8:]) == sctpChecksum(b)
	return true
}

// chained reports whether octets are chunks, one after the other.
func chained(b []byte) bool {
	for len(b) > 0 {
		if len(b) < chunkLen {
			return false
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < chunkLen || n > len(b) {
			return false
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return true
}

// sctpChecksum is that of a packet, with the field itself as zero: RFC 9260, section 6.8.
func sctpChecksum(b []byte) uint32 {
	var zero [4]byte
	sum := crc32.Update(0, castagnoli, b[:8])
	sum = crc32.Update(sum, castagnoli, zero[:])
	return crc32.Update(sum, castagnoli, b[sctpLen:])
}

// A chunk is one of a packet's.
type chunk struct {
	kind, flags byte
	value       []byte // what was captured of it
	length      int    // of the value, as sent
}

// next takes the first chunk off a packet.
func (s *sctpPacket) next() (c chunk, ok bool) {
	if len(s.chunks) < chunkLen {
		return c, false
	}
	n := int(binary.BigEndian.Uint16(s.chunks[2:]))
	if n < chunkLen || n > s.length {
		return c, false
	}
	c = chunk{s.chunks[0], s.chunks[1], s.chunks[chunkLen:min(n, len(s.chunks))], n - chunkLen}
	padded := (n + 3) &^ 3
	s.chunks, s.length = s.chunks[min(padded, len(s.chunks)):], s.length-padded
	return c, true
}

// parameters calls found for each parameter of INIT or INIT ACK that is whole.
func parameters(b []byte, found func(kind uint16, value []byte)) {
	for len(b) >= paramLen {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < paramLen || n > len(b) {
			return
		}
		found(binary.BigEndian.Uint16(b), b[paramLen:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// setup reads an INIT or INIT ACK: RFC 9260, section 3.3.2.
func (c *chunk) setup(at Stamp) (s Setup, ok bool) {
	b := c.value
	if len(b) < initChunkLen {
		return s, false
	}
	s = Setup{
		Packet: at, Tag: binary.BigEndian.Uint32(b), Window: binary.BigEndian.Uint32(b[4:]),
		Out: binary.BigEndian.Uint16(b[8:]), In: binary.BigEndian.Uint16(b[10:]), TSN: binary.BigEndian.Uint32(b[12:]),
		Whole: len(b) == c.length,
	}
	parameters(b[initChunkLen:], func(kind uint16, v []byte) {
		if kind == paramAdaptation && len(v) == 4 {
			s.Adaptation, s.HasAdaptation = binary.BigEndian.Uint32(v), true
		}
	})
	return s, true
}

// told reports whether an ABORT with such a cause says in words what it is for.
func told(cause uint16) bool { return cause == causeUserAbort || cause == causeProtocol }

// reason returns the text of an ABORT of the sender's consumer, or over a violation of the
// protocol: RFC 9260, sections 3.3.10.12 and 13.
func (c *chunk) reason() string {
	if len(c.value) < abortCauseLen || !told(binary.BigEndian.Uint16(c.value)) {
		return ""
	}
	n := min(int(binary.BigEndian.Uint16(c.value[2:])), len(c.value))
	return string(c.value[abortCauseLen:max(n, abortCauseLen)])
}
