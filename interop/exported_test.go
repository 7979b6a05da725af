//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestTsharkExported exports captures and has tshark read the DDP segments in them, and the findings. It finds each of
// ours, those with markers too and of revision 2, which it does not read where they come from.
func TestTsharkExported(t *testing.T) {
	files, err := filepath.Glob("testdata/captures/*.pcap")
	testrig.Must(t, err)
	sctp, err := filepath.Glob("testdata/captures/sctp/*.pcap")
	testrig.Must(t, err)
	if len(files) < 10 || len(sctp) == 0 {
		t.Fatalf("captures: %q, %q", files, sctp)
	}
	for _, file := range append(files, sctp...) {
		t.Run(filepath.Base(file), func(t *testing.T) { wantExported(t, file) })
	}
}

// wantExported compares the DDP segments of a capture with what tshark finds in the exported one, in the order of the
// file.
func wantExported(t *testing.T, file string) {
	in, err := os.ReadFile(file)
	testrig.Must(t, err)
	path := filepath.Join(t.TempDir(), "exported.pcapng")
	out, err := os.Create(path)
	testrig.Must(t, err)
	defer out.Close()
	e, err := export.New(out, export.Config{})
	testrig.Must(t, err)
	own := &segments{to: e}
	_, err = decode.Run(bytes.NewReader(in), decode.Config{After: e.Packet}, own)
	testrig.Must(t, err)
	testrig.Must(t, e.Close())
	found, comments := tsharkExported(t, path)
	for i := range min(len(found), len(own.texts)) {
		found[i].terminate = blur(found[i].terminate, own.terminates[i])
	}
	var theirs []string
	for _, r := range found {
		theirs = append(theirs, segmentText(r))
	}
	if d := cmp.Diff(own.texts, theirs); d != "" {
		t.Errorf("tshark differs (-ours +tshark's):\n%s", d)
	}
	for _, text := range own.findings {
		if !strings.Contains(comments, text) {
			t.Errorf("no comment has %q", text)
		}
	}
}

// segments has what is exported as text, too.
type segments struct {
	decode.Ignore
	to         decode.Consumer // nil: nobody else is told
	texts      []string
	terminates []*rdmap.Terminate
	findings   []string
}

func (s *segments) FPDU(c *decode.Connection, f *decode.FPDU) {
	if s.to != nil {
		s.to.FPDU(c, f)
	}
	if f.HasSegment && f.Cut == 0 {
		r := reportOf(event{fpdu: *f})
		s.terminates = append(s.terminates, r.terminate)
		r.terminate = blur(r.terminate, r.terminate)
		s.texts = append(s.texts, segmentText(r))
	}
}

func (s *segments) Finding(c *decode.Connection, f *decode.Finding) {
	if s.to != nil {
		s.to.Finding(c, f)
	}
	s.findings = append(s.findings, f.Text)
}

// segmentText describes a DDP segment, and leaves out what an exported one does not have.
func segmentText(r reported) string {
	return reported{header: r.header, version: r.version, op: r.op, stag: r.stag, read: r.read, terminate: r.terminate}.String()
}

// tsharkExported reads the exported DDP segments and the comments of a capture.
func tsharkExported(t *testing.T, path string) (found []reported, comments string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tshark", "-r", path, "-T", "pdml", "--disable-protocol", "rpcordma").Output()
	if errors.Is(err, exec.ErrNotFound) {
		testrig.Lacks(t, err.Error())
	}
	testrig.Must(t, err)
	var doc pdml
	testrig.Must(t, xml.Unmarshal(out, &doc))
	for _, packet := range doc.Packets {
		exported := false
		for _, p := range packet.Protos {
			exported = exported || p.Name == "exported_pdu"
			if p.Name == "iwarp_ddp_rdmap" && exported {
				var r reported
				p.rdmap(t, &r)
				found = append(found, r)
			}
			if p.Name == "pkt_comment" {
				for _, f := range p.Fields {
					comments += f.Show + "\n"
				}
			}
		}
	}
	return found, comments
}
