package chunk

import "encoding/binary"

// A Type says what a chunk is.
type Type uint8

// The types: RFC 9260, section 3.2.
const (
	TypeData             Type = 0
	TypeInit             Type = 1
	TypeInitAck          Type = 2
	TypeSack             Type = 3
	TypeHeartbeat        Type = 4
	TypeHeartbeatAck     Type = 5
	TypeAbort            Type = 6
	TypeShutdown         Type = 7
	TypeShutdownAck      Type = 8
	TypeError            Type = 9
	TypeCookieEcho       Type = 10
	TypeCookieAck        Type = 11
	TypeShutdownComplete Type = 14
)

// FlagT of ABORT and SHUTDOWN COMPLETE: the packet has the tag that its sender expects, since it knows no other.
const FlagT = 1

// overhead is the bytes of a chunk, parameter or error cause before its value: a type (for a chunk with flags) and a
// length, which counts them, and not the padding.
const overhead = 4

// A Chunk is one of a packet's.
type Chunk struct {
	Type  Type
	Flags byte
	// Value is what is there of it, without padding, and Length how many bytes of it were sent. They differ in a
	// packet that was cut off. Append does not look at Length.
	Value  []byte
	Length int
}

// Size is how many bytes Append appends.
func (c *Chunk) Size() int { return overhead + padded(len(c.Value)) }

// Append appends the chunk with its padding.
func (c *Chunk) Append(b []byte) []byte {
	return appendField(b, uint16(c.Type)<<8|uint16(c.Flags), c.Value)
}

// Chunks are those of a packet that may be cut off, or what is left of them.
type Chunks struct {
	Bytes []byte // what is there of them
	Sent  int    // how many bytes were sent
}

// In returns the chunks of a packet, up to one that is not whole, and whether the packet has them and nothing else.
func In(packet []byte) (all []Chunk, whole bool) {
	b := packet[min(HeaderLen, len(packet)):]
	rest := Chunks{b, len(b)}
	for c, ok := rest.Next(); ok; c, ok = rest.Next() {
		all = append(all, c)
	}
	return all, len(rest.Bytes) == 0
}

// Next takes the first chunk off. It reports false if there is none, or none that was sent as a whole: then the rest
// stays.
func (s *Chunks) Next() (c Chunk, ok bool) {
	kind, value, n, ok := s.field()
	return Chunk{Type(kind >> 8), byte(kind), value, n}, ok
}

// field takes off a chunk, or what has the form of one: a parameter, or an error cause. length is that of its value, as
// sent.
func (s *Chunks) field() (kind uint16, value []byte, length int, ok bool) {
	if len(s.Bytes) < overhead {
		return 0, nil, 0, false
	}
	b := s.Bytes
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < overhead || n > s.Sent {
		return 0, nil, 0, false
	}
	s.Bytes, s.Sent = b[min(padded(n), len(b)):], max(s.Sent-padded(n), 0)
	return binary.BigEndian.Uint16(b), b[overhead:min(n, len(b))], n - overhead, true
}

func appendField(b []byte, kind uint16, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(overhead+len(value)))
	b = append(b, value...)
	return append(b, make([]byte, padded(len(value))-len(value))...)
}

func padded(n int) int { return (n + 3) &^ 3 }
