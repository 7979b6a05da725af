package capsule

import (
	"encoding/binary"
	"fmt"
)

// CompletionLen is the length of a Completion.
const CompletionLen = 16

// SQHeadOff is the SQHead of a queue without flow control (AttrNoFlow).
const SQHeadOff = 0xFFFF

// A Completion is a completion queue entry.
//
//	byte 0                    8          10         12         14             16
//	      +--------------------+----------+----------+----------+--------------+
//	      | result             | SQ head  | SQ id    |command id|status, phase |
//	      +--------------------+----------+----------+----------+--------------+
//
// The phase, the lowest bit of the last field, has no meaning over a fabric, and is 0.
type Completion struct {
	Result uint64
	SQHead uint16
	SQID   uint16
	ID     uint16 // of the command
	Status Status
}

// ParseCompletion returns the completion that a capsule is. The error is an *Error.
func ParseCompletion(b []byte) (c Completion, err error) {
	if err := needs("completion", b, CompletionLen); err != nil {
		return c, err
	}
	return Completion{
		Result: binary.LittleEndian.Uint64(b),
		SQHead: binary.LittleEndian.Uint16(b[8:]),
		SQID:   binary.LittleEndian.Uint16(b[10:]),
		ID:     binary.LittleEndian.Uint16(b[12:]),
		Status: Status(binary.LittleEndian.Uint16(b[14:]) >> 1),
	}, nil
}

// Append appends the CompletionLen bytes.
func (c Completion) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, c.Result)
	b = binary.LittleEndian.AppendUint16(b, c.SQHead)
	b = binary.LittleEndian.AppendUint16(b, c.SQID)
	b = binary.LittleEndian.AppendUint16(b, c.ID)
	return binary.LittleEndian.AppendUint16(b, uint16(c.Status)<<1)
}

// String has id, status and result, for logs.
func (c Completion) String() string {
	return fmt.Sprintf("id %#04x result %#x: %v", c.ID, c.Result, c.Status)
}
