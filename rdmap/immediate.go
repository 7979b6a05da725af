package rdmap

import (
	"encoding/binary"
	"fmt"
)

// ParseImmediateData reads the Immediate Data at the beginning of b, the payload of the segment
// of an Immediate Data message, with or without SE. It checks the length only: at least
// [ImmediateDataLen] bytes; [CheckSegment] sees to it that there are no more. The error is an
// [*Error] with [CodeCatastrophicStream].
//
// RFC 7306, section 6.2.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Immediate Data                         |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// It is figure 7 of RFC 7306.
func ParseImmediateData(b []byte) (uint64, error) {
	if len(b) < ImmediateDataLen {
		return 0, &Error{
			Code: CodeCatastrophicStream, Op: OpImmediateData, Field: "Immediate Data",
			Reason: fmt.Sprintf("expected %d bytes, got %d", ImmediateDataLen, len(b)),
		}
	}
	return binary.BigEndian.Uint64(b), nil
}

// AppendImmediateData appends the [ImmediateDataLen] bytes of Immediate Data to dst.
func AppendImmediateData(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

var immediateFields = []layout{{name: "Immediate Data", len: ImmediateDataLen, verb: "%#x"}}

func immediateText(payload []byte) string {
	v, _ := ParseImmediateData(payload)
	return fmt.Sprintf("data %#x", v)
}
