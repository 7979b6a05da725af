package capsule

import (
	"encoding/binary"
	"fmt"
)

// An SGLType is the last byte of an SGL descriptor: type in the upper half, subtype in the lower.
type SGLType uint8

const (
	// SGLOffset is data in the capsule: Address counts from the end of the command.
	SGLOffset SGLType = 0x01
	// SGLKeyed is memory of the host's: Address is the tagged offset, Key the STag.
	SGLKeyed SGLType = 0x40
	// SGLKeyedInvalidate is SGLKeyed, and asks the controller to invalidate the key by the Send of the completion.
	SGLKeyedInvalidate SGLType = 0x4F

	// MaxKeyed is how many bytes a keyed descriptor can have.
	MaxKeyed = 1<<24 - 1

	sglLen  = 16
	sglType = 15
)

// Kind is the type without the subtype.
func (t SGLType) Kind() SGLType { return t & 0xF0 }

// String names the type.
func (t SGLType) String() string {
	switch t {
	case SGLOffset:
		return "in-capsule"
	case SGLKeyed:
		return "keyed"
	case SGLKeyedInvalidate:
		return "keyed, invalidate"
	}
	return fmt.Sprintf("SGL type %#02x", uint8(t))
}

// An SGL is an SGL descriptor, which says where the data of a command are. The descriptor of a command without data is
// SGLKeyed, and all else in it is zero.
//
//	byte 0               8           11                    15      16
//	      +---------------+-----------+---------------------+-------+
//	keyed | address       | length    | key                 | type  |
//	      +---------------+-----------+----+----------------+-------+
//	other | address       | length         | reserved       | type  |
//	      +---------------+----------------+----------------+-------+
type SGL struct {
	Type    SGLType
	Address uint64
	Length  uint32 // at most MaxKeyed if the type is a keyed one
	Key     uint32 // of other types the three reserved bytes
}

// Keyed reports whether the descriptor has a key.
func (s SGL) Keyed() bool { return s.Type.Kind() == SGLKeyed }

func sglAt(b []byte) SGL {
	s := SGL{Type: SGLType(b[sglType]), Address: binary.LittleEndian.Uint64(b)}
	if s.Keyed() {
		s.Length = binary.LittleEndian.Uint32(b[8:]) & MaxKeyed
		s.Key = binary.LittleEndian.Uint32(b[11:])
		return s
	}
	s.Length = binary.LittleEndian.Uint32(b[8:])
	s.Key = binary.LittleEndian.Uint32(b[11:]) >> 8
	return s
}

func (s SGL) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, s.Address)
	if s.Keyed() {
		b = append(b, byte(s.Length), byte(s.Length>>8), byte(s.Length>>16))
		b = binary.LittleEndian.AppendUint32(b, s.Key)
		return append(b, byte(s.Type))
	}
	b = binary.LittleEndian.AppendUint32(b, s.Length)
	return append(b, byte(s.Key), byte(s.Key>>8), byte(s.Key>>16), byte(s.Type))
}

// String says how many bytes there are, and where.
func (s SGL) String() string {
	if s.Keyed() && s.Length == 0 {
		return "no data"
	}
	return fmt.Sprintf("%d bytes %v at %#x", s.Length, s.Type, s.Address)
}
