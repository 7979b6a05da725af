package capsule

import (
	"encoding/binary"
	"fmt"
)

// CommandLen is the length of a Command. What follows it in a capsule is in-capsule data.
const CommandLen = 64

// FlagSGL in Command.Flags tells that the data are described by an SGL descriptor, which is the only way over a fabric.
// The lowest two bits are those of fused commands.
const FlagSGL = 0x40

// A Command is a submission queue entry.
//
//	byte 0      1     2          4                     8
//	      +------+-----+----------+---------------------+
//	      |opcode|flags|command id|namespace id (NSID)  |
//	      +------+-----+----------+---------------------+
//	    8 | dwords 2 and 3                              |
//	      +---------------------------------------------+
//	   16 | metadata pointer                            |
//	      +---------------------------------------------+
//	   24 | SGL descriptor, 16 bytes                   |
//	      +----------------------+----------------------+
//	   40 | dword 10             | dword 11             |
//	      +----------------------+----------------------+
//	   48 | dword 12             | dword 13             |
//	      +----------------------+----------------------+
//	   56 | dword 14             | dword 15             |
//	      +----------------------+----------------------+
//
// Of a fabrics command (OpFabrics) the first byte of NSID is the type: see FabricsType.
type Command struct {
	Opcode   Opcode
	Flags    uint8
	ID       uint16 // The host's, opaque, and all of it comes back in the completion.
	NSID     uint32
	Reserved uint64 // dwords 2 and 3
	Metadata uint64
	SGL      SGL
	CDW      [6]uint32 // dwords 10 to 15
}

const (
	commandFlags    = 1
	commandID       = 2
	commandNSID     = 4
	commandReserved = 8
	commandMetadata = 16
	commandSGL      = 24
	commandDwords   = 40
)

// ParseCommand returns the command at the beginning of a capsule. The error is an *Error.
func ParseCommand(b []byte) (c Command, err error) {
	if err := needs("command", b, CommandLen); err != nil {
		return c, err
	}
	c = Command{
		Opcode: Opcode(b[0]), Flags: b[commandFlags],
		ID:       binary.LittleEndian.Uint16(b[commandID:]),
		NSID:     binary.LittleEndian.Uint32(b[commandNSID:]),
		Reserved: binary.LittleEndian.Uint64(b[commandReserved:]),
		Metadata: binary.LittleEndian.Uint64(b[commandMetadata:]),
		SGL:      sglAt(b[commandSGL:]),
	}
	for i := range c.CDW {
		c.CDW[i] = binary.LittleEndian.Uint32(b[commandDwords+4*i:])
	}
	return c, nil
}

// Append appends the CommandLen bytes.
func (c *Command) Append(b []byte) []byte {
	b = append(b, byte(c.Opcode), c.Flags)
	b = binary.LittleEndian.AppendUint16(b, c.ID)
	b = binary.LittleEndian.AppendUint32(b, c.NSID)
	b = binary.LittleEndian.AppendUint64(b, c.Reserved)
	b = binary.LittleEndian.AppendUint64(b, c.Metadata)
	b = c.SGL.append(b)
	for _, v := range c.CDW {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// pair is the number of 64 bits in dwords 10+i and 11+i.
func (c *Command) pair(i int) uint64 { return uint64(c.CDW[i+1])<<32 | uint64(c.CDW[i]) }

func (c *Command) setPair(i int, v uint64) { c.CDW[i], c.CDW[i+1] = uint32(v), uint32(v>>32) }

// Name names what the command does, on an Admin Queue or another.
func (c *Command) Name(admin bool) string {
	if c.Opcode == OpFabrics {
		return c.FabricsType().String()
	}
	return c.Opcode.Name(admin)
}

// String has id and numbers, for logs.
func (c Command) String() string {
	return fmt.Sprintf("opcode %#02x id %#04x nsid %d %v cdw10 %#x", uint8(c.Opcode), c.ID, c.NSID, c.SGL, c.CDW)
}
