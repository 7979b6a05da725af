package ulpdata

import (
	"encoding/binary"
	"strings"
)

// marks are what the private data of programs begin with whose conventions are not of this package: iwarp cp and iwarp
// perf. Their tests hold them to these.
var marks = []struct{ mark, program string }{
	{"iWcp", "iwarp cp"},
	{"iwpf", "iwarp perf"},
}

// program names the program whose private data this looks like, beside those that Recognize knows; it is empty if there
// is none.
func program(b []byte) string {
	for _, m := range marks {
		if strings.HasPrefix(string(b), m.mark) {
			return m.program
		}
	}
	if likeRsockets(b) {
		return "rsockets"
	}
	if len(b) == iserLen && b[0] != 0 && b[0]&^iserFlags == 0 && b[1]|b[2]|b[3] == 0 {
		return "iSER"
	}
	return ""
}

// The private data of iSER, as Linux has it: flags for what an end does without, and three bytes that are reserved.
const (
	iserLen   = 4
	iserFlags = 0xc0 // zero-based addresses, and Send with Invalidate
)

// The private data of rdma-core's rsockets, and of package stream: version 1, flags, credits, a byte that is reserved
// or tells a kind, two that are reserved, how many maps there are, and then two places of 16 bytes: a TO, an STag and
// a number, neither of which is zero. Package internal/rsockets has them, and a test that they are these.
const (
	rsocketsLen     = 40
	rsocketsVersion = 1
	rsocketsFlags   = 0x03
)

func likeRsockets(b []byte) bool {
	if len(b) != rsocketsLen || b[0] != rsocketsVersion || b[1]&^rsocketsFlags != 0 || b[5] != 0 || b[6] != 0 {
		return false
	}
	return binary.BigEndian.Uint32(b[16:]) != 0 && binary.BigEndian.Uint32(b[20:]) != 0 &&
		binary.BigEndian.Uint32(b[32:]) != 0 && binary.BigEndian.Uint32(b[36:]) != 0
}
