//go:build interop

package interop_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// A spoken is what is said of the messages of a connection.
type spoken struct {
	lines  []string
	silent map[string]bool // messages of which nothing is said
	*decode.Connection
}

// A hearer takes note of talks, and exports the capture.
type hearer struct {
	*export.Exporter
	talks map[*decode.Connection]*spoken
}

func (h hearer) of(c *decode.Connection) *spoken {
	if h.talks[c] == nil {
		h.talks[c] = &spoken{Connection: c, silent: map[string]bool{}}
	}
	return h.talks[c]
}

func (h hearer) FPDU(c *decode.Connection, f *decode.FPDU) {
	sent := rdmap.OpSend <= f.Op && f.Op <= rdmap.OpSendSEInvalidate && f.Segment.Last && len(f.Segment.Payload) > 0
	if sent || f.ReadRequest != nil && f.ReadRequest.Size > 0 {
		h.of(c).silent[place(f.Dir, f.Offset)] = true
	}
	h.Exporter.FPDU(c, f)
}

func (h hearer) ULP(c *decode.Connection, u *decode.ULP) {
	delete(h.of(c).silent, place(u.Dir, u.Offset))
	h.of(c).lines = append(h.of(c).lines, u.Text)
}

func place(dir capture.Dir, offset uint64) string { return fmt.Sprint(dir, " at ", offset) }

// heardIn decodes a capture, and returns what is said of the connections to a port, and an exported capture for tshark.
func heardIn(t *testing.T, pcap string, port uint16) (talks []*spoken, exported string) {
	t.Helper()
	in, err := os.ReadFile(pcap)
	testrig.Must(t, err)
	exported = filepath.Join(t.TempDir(), "exported.pcapng")
	out, err := os.Create(exported)
	testrig.Must(t, err)
	defer out.Close()
	e, err := export.New(out, export.Config{})
	testrig.Must(t, err)
	h := hearer{e, map[*decode.Connection]*spoken{}}
	_, err = decode.Run(bytes.NewReader(in), decode.Config{After: e.Packet}, h)
	testrig.Must(t, err)
	testrig.Must(t, e.Close())
	talks = slices.DeleteFunc(slices.Collect(maps.Values(h.talks)),
		func(k *spoken) bool { return k.TCP.Halves[k.Responder()].Addr.Port() != port })
	slices.SortFunc(talks, func(a, b *spoken) int { return cmp.Compare(a.TCP.Number, b.TCP.Number) })
	return talks, exported
}

// wantSaid looks for patterns in what is said, in their order. Of each message something is said.
func (k *spoken) wantSaid(t *testing.T, patterns []string) {
	t.Helper()
	if len(k.silent) > 0 || k.Findings[decode.Error] > 0 {
		t.Errorf("nothing is said of %v; %d errors", slices.Sorted(maps.Keys(k.silent)), k.Findings[decode.Error])
	}
	rest := k.lines
	for _, p := range patterns {
		at := slices.IndexFunc(rest, regexp.MustCompile(p).MatchString)
		if at < 0 {
			t.Fatalf("%q does not come next in\n%s", p, strings.Join(k.lines, "\n"))
		}
		rest = rest[at+1:]
	}
}
