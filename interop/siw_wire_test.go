//go:build interop

package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// wire describes the connections to a port that are new in the capture: startup
// frames and the first FPDU.
func (r *siwRig) wire(t testing.TB, port string) string {
	t.Helper()
	all := slices.DeleteFunc(r.capture(t), func(c *conversation) bool { return c.ports[fromResponder] != port })
	var each []string
	for _, c := range all[r.seen[port]:] {
		each = append(each, strings.Join(c.startup(), "; "))
	}
	r.seen[port] = len(all)
	return strings.Join(each, " / ")
}

// capture returns what has passed the guest's network card up to now. QEMU may be in
// the middle of the last packet.
func (r *siwRig) capture(t testing.TB) (all conversations) {
	t.Helper()
	var err error
	poll(time.Second, func() bool {
		var octets []byte
		if octets, err = os.ReadFile(r.pcap); err == nil {
			all = nil
			err = assemble(bytes.NewReader(octets), &all)
		}
		return !errors.Is(err, io.ErrUnexpectedEOF)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// startup describes how a connection begins.
func (c *conversation) startup() []string {
	events, _ := decode(c.pieces)
	var text []string
	for len(events) > 0 && events[0].startup != nil {
		text = append(text, shortFrame(events[0].startup))
		events = events[1:]
	}
	rest := c.behind(len(text))
	switch {
	case len(text) == 0:
		return []string{mpa.DescribeStartup(rest)}
	case bytes.HasPrefix(rest, []byte(mpa.KeyRtr)):
		text = append(text, "Rtr frame")
	case len(events) == 0 && len(rest) > 0:
		return append(text, withoutCRC(rest))
	}
	if len(events) > 0 {
		text = append(text, events[0].fpdu.kind())
	}
	return text
}

// behind returns what the Initiator has sent behind the startup frames.
func (c *conversation) behind(frames int) []byte {
	sent := merge(c.pieces)[fromInitiator].bytes
	if f, err := mpa.ParseStartup(sent); err == nil && frames > 0 {
		sent = sent[len(f):]
	}
	return sent
}

// withoutCRC describes an FPDU that no Reader gives out.
func withoutCRC(b []byte) string {
	r := mpa.NewReader(false, false)
	found, _, err := r.Next(bytes.Clone(b))
	if err != nil {
		return err.Error()
	}
	f, err := parseFPDU(found.ULPDU)
	if err != nil {
		return err.Error()
	}
	return f.kind() + ", without a CRC"
}

// frameNoise is what is the same in every frame, and the length of private data.
var frameNoise = regexp.MustCompile(`^MPA ID (Re[qp]) Frame(.*?) pd \d+`)

func shortFrame(f mpa.StartupFrame) string {
	return strings.NewReplacer("Req ", "Request ", "Rep ", "Reply ").Replace(frameNoise.ReplaceAllString(f.String(), "$1$2"))
}

// kind says what an FPDU is, and whether it has a payload.
func (f fpdu) kind() string {
	switch {
	case f.terminate != nil:
		return fmt.Sprintf("Terminate %#04x", uint16(f.terminate.Code))
	case f.read != nil && f.read.Size == 0, f.op == rdmap.OpWrite && f.ulpduLength == len(f.header.Append(nil)):
		return "zero-length " + f.op.String()
	}
	return f.op.String()
}
