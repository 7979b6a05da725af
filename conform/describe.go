package conform

import (
	"fmt"
	"strconv"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

func quote(s string) string { return strconv.Quote(s) }

// describe returns what bytes of the startup say, after a colon, or nothing.
func describe(b []byte) string {
	if found, _, ok := mpa.CutStartup(b); ok {
		return ": " + found.String()
	}
	return ""
}

func describeULPDU(b []byte) string {
	seg, err := ddp.Parse(b)
	if err != nil {
		return fmt.Sprintf("ULPDU of %s", wording.Bytes(len(b)))
	}
	return describeSegment(&seg)
}

func describeSegment(seg *ddp.Segment) string {
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
