package capture

import (
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp/internal/chunk"
)

const udpLen = 8 // bytes of a header

// PortUDP is the UDP port of SCTP: RFC 6951, section 3.
const PortUDP = 9899

// An sctpPacket is what is known of a packet when its headers have been read.
type sctpPacket struct {
	key     associationKey
	swapped bool // the source is b of the tuple
	tag     uint32
	chunks  chunk.Chunks // what was captured of them
	sure    bool         // of IP protocol 132, or with the right checksum
}

// An associationKey tells associations apart. One of IP protocol 132 has no UDP ports.
type associationKey struct {
	tuple tuple  // with the ports of SCTP
	udp   uint32 // of a and of b
}

// parse reads the headers of a packet down to SCTP's. It reports false for one that is
// none of SCTP, in UDP or not.
func (s *sctpPacket) parse(p *Packet) bool {
	d, why := p.datagram(forSCTP)
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
	h, ok := chunk.ParseHeader(b)
	if !ok || len(b) < chunk.MinLen {
		return false
	}
	s.key.tuple = d.tuple
	s.key.tuple.setPorts(h.Source, h.Destination)
	if s.swapped = s.key.tuple.order(); s.swapped {
		udp[0], udp[1] = udp[1], udp[0]
	}
	s.key.udp = uint32(udp[0])<<16 | uint32(udp[1])
	s.tag = h.Tag
	s.chunks = chunk.Chunks{Bytes: b[chunk.HeaderLen:], Sent: d.length - chunk.HeaderLen}
	s.sure = s.sure || len(b) == d.length && chained(s.chunks) && chunk.Sealed(b)
	return true
}

// chained reports whether bytes are chunks, one after the other.
func chained(b chunk.Chunks) bool {
	for {
		if _, ok := b.Next(); !ok {
			return len(b.Bytes) == 0
		}
	}
}

// setup reads an INIT or INIT ACK.
func setup(c *chunk.Chunk, at Stamp) (s Setup, ok bool) {
	said, err := chunk.ParseSetup(c.Value)
	return Setup{
		Tag: said.Tag, Window: said.Window, Out: said.Out, In: said.In, TSN: said.TSN,
		Adaptation: said.Adaptation, HasAdaptation: said.HasAdaptation,
		Packet: at, Whole: len(c.Value) == c.Length,
	}, !errors.Is(err, chunk.ErrShort)
}
