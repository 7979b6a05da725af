package chunk

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/crc32c"
)

// Lengths in bytes.
const (
	HeaderLen = 12                   // of the common header
	MinLen    = HeaderLen + overhead // of a packet with a chunk, at least
)

// A Header is the common header of a packet, without its checksum: RFC 9260, section 3.1.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Source Port Number       |    Destination Port Number    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Verification Tag                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                           Checksum                            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Header struct {
	Source, Destination uint16 // ports
	Tag                 uint32
}

// ParseHeader reads the header of a packet. It reports false if there is no room for one.
func ParseHeader(packet []byte) (h Header, ok bool) {
	if len(packet) < HeaderLen {
		return h, false
	}
	return Header{
		Source: binary.BigEndian.Uint16(packet), Destination: binary.BigEndian.Uint16(packet[2:]),
		Tag: binary.BigEndian.Uint32(packet[4:]),
	}, true
}

// Packet returns a packet with its checksum.
func (h Header) Packet(chunks ...Chunk) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 128), h.Source)
	b = binary.BigEndian.AppendUint16(b, h.Destination)
	b = binary.BigEndian.AppendUint32(b, h.Tag)
	b = append(b, 0, 0, 0, 0)
	for _, c := range chunks {
		b = c.Append(b)
	}
	return Seal(b)
}

// Seal puts the checksum into a packet that has a header, and returns the packet.
func Seal(packet []byte) []byte {
	binary.LittleEndian.PutUint32(packet[8:], checksum(packet))
	return packet
}

// Sealed reports whether bytes have room for a header, whose checksum is right.
func Sealed(packet []byte) bool {
	return len(packet) >= HeaderLen && binary.LittleEndian.Uint32(packet[8:]) == checksum(packet)
}

// checksum is that of a packet, with the field itself as zero: RFC 9260, section 6.8 and appendix A.
func checksum(b []byte) uint32 {
	var zero [4]byte
	sum := crc32c.Update(0, b[:8])
	sum = crc32c.Update(sum, zero[:])
	return crc32c.Update(sum, b[HeaderLen:])
}
