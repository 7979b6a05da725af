package conform

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// describe returns what octets of the startup say, behind a colon, or nothing.
func describe(b []byte) string {
	if !strings.HasPrefix(string(b), "MPA ") {
		return ""
	}
	if f, err := mpa.ParseStartup(b); err == nil && strings.HasPrefix(f.Key(), "MPA ID ") {
		return ": " + f.String()
	}
	if k, err := mpa.ParseStartKey(b); err == nil && k.Key() == mpa.KeyStart {
		return ": " + k.String()
	}
	return ""
}

func describeULPDU(b []byte) string {
	seg, err := ddp.Parse(b)
	if err != nil {
		return fmt.Sprintf("ULPDU of %s", count(len(b)))
	}
	return describeSegment(&seg)
}

func describeSegment(seg *ddp.Segment) string {
	op := rdmap.OpcodeOf(&seg.Header)
	text := fmt.Sprintf("%v, %v, payload of %s", op, seg.Header, count(len(seg.Payload)))
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
