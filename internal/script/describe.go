package script

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// DescribeStartup returns what bytes of the startup say, after a colon, or nothing.
func DescribeStartup(b []byte) string {
	if found, _, ok := mpa.CutStartup(b); ok {
		return ": " + found.String()
	}
	return ""
}

// DescribeULPDU returns what the DDP segment in a ULPDU says.
func DescribeULPDU(b []byte) string {
	seg, err := ddp.Parse(b)
	if err != nil {
		return fmt.Sprintf("ULPDU of %s", wording.Bytes(len(b)))
	}
	return DescribeSegment(&seg)
}

// DescribeSegment returns what a DDP segment says.
func DescribeSegment(seg *ddp.Segment) string {
	op := rdmap.OpcodeOf(&seg.Header)
	text := fmt.Sprintf("%v, %v, payload of %s", op, seg.Header, wording.Bytes(len(seg.Payload)))
	switch op {
	case rdmap.OpReadRequest:
		if r, err := rdmap.ParseReadRequest(seg.Payload); err == nil {
			text += ": " + r.String()
		}
	case rdmap.OpTerminate:
		if t, err := rdmap.ParseTerminate(seg.Payload); err == nil {
			text += ": " + t.String()
		}
	}
	return text
}
