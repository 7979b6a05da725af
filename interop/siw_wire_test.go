//go:build interop

package interop_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// wire describes the connections to a port that are new in the capture: startup
// frames and the first FPDU.
func (r *siwRig) wire(t testing.TB, port string) string {
	t.Helper()
	all := r.connections(t, port)
	var each []string
	for _, c := range all[r.seen[port]:] {
		each = append(each, strings.Join(c.startup(), "; "))
	}
	r.seen[port] = len(all)
	return strings.Join(each, " / ")
}

// connections returns those to a port that have passed the guest's network card up to
// now, in the order of their beginnings. QEMU may be in the middle of the last packet.
func (r *siwRig) connections(t testing.TB, port string) (all []*connection) {
	t.Helper()
	var err error
	poll(time.Second, func() bool {
		var file []byte
		if file, err = os.ReadFile(r.pcap); err == nil {
			all, err = decodeAll(bytes.NewReader(file))
		}
		return err == nil
	})
	testrig.Must(t, err)
	return slices.DeleteFunc(all, func(c *connection) bool { return c.port(fromResponder) != port })
}

// startup describes how a connection begins. After an Rtr frame, which siw takes for an
// FPDU, its first FPDU tells what came of that.
func (c *connection) startup() (text []string) {
	rtr := false
	for _, e := range c.events {
		if rtr && e.dir == fromInitiator {
			continue
		}
		switch e.kind {
		case decode.FrameRtr:
			text, rtr = append(text, "Rtr frame"), true
		case decode.FrameStartKey:
			text = append(text, mpa.StartKey(e.bytes).String())
		case 0:
			return append(text, kind(&e.fpdu))
		default:
			text = append(text, shortFrame(e.startup))
		}
	}
	return text
}

// frameNoise is what is the same in every frame, and the length of private data.
var frameNoise = regexp.MustCompile(`^MPA ID (Re[qp]) Frame(.*?) pd \d+`)

func shortFrame(f mpa.StartupFrame) string {
	return strings.NewReplacer("Req ", "Request ", "Rep ",
		"Reply ").Replace(frameNoise.ReplaceAllString(f.String(), "$1$2"))
}

// kind says what an FPDU is, and whether it has a payload.
func kind(f *decode.FPDU) string {
	if f.Err != nil {
		return withoutCRC(f)
	}
	switch {
	case f.Terminate != nil:
		return fmt.Sprintf("Terminate 0x%x", f.Segment.Payload[:2])
	case f.ReadRequest != nil && f.ReadRequest.Size == 0, f.Op == rdmap.OpWrite && len(f.Segment.Payload) == 0:
		return "zero-length " + f.Op.String()
	}
	return f.Op.String()
}

// withoutCRC describes an FPDU whose CRC is wrong.
func withoutCRC(f *decode.FPDU) string {
	r := mpa.NewReader(false, false)
	found, _, err := r.Next(bytes.Clone(f.Bytes))
	if err != nil {
		return err.Error()
	}
	s, err := ddp.Parse(found.ULPDU)
	if err != nil {
		return err.Error()
	}
	held := decode.FPDU{Segment: s, Op: rdmap.OpcodeOf(&s.Header)}
	if held.Op == rdmap.OpTerminate {
		held.Terminate = &rdmap.Terminate{}
	}
	return kind(&held) + ", without a CRC"
}
