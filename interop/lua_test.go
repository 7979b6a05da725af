//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// startups has what startup frames of revision 2 say, by packet, and failed negotiations.
type startups struct {
	decode.Ignore
	texts []string
}

func (s *startups) Startup(_ *decode.Connection, f *decode.Startup) {
	if f.Fields == nil || !f.Fields.S() {
		return
	}
	if e, ok := f.Fields.Enhanced(); ok {
		s.texts = append(s.texts, fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%d\t", f.Last.Number, wording.Bit(e.A), wording.Bit(e.B),
			wording.Bit(e.C), wording.Bit(e.D), e.IRD, e.ORD))
	}
}

func (s *startups) FPDU(_ *decode.Connection, f *decode.FPDU) {
	if f.Terminate != nil {
		s.texts = append(s.texts, fmt.Sprintf("%d\t\t\t\t\t\t\tno matching RTR option", f.Last.Number))
	}
}

// TestLua has tshark read IRD, ORD and RTR of the stored captures, and of all their values in one that is made up, with
// the dissector that iwarp extcap --install installs.
func TestLua(t *testing.T) {
	files, err := filepath.Glob("testdata/captures/*.pcap")
	testrig.Must(t, err)
	seen := 0
	for _, file := range append(files, madeUpStartups(t)) {
		in, err := os.ReadFile(file)
		testrig.Must(t, err)
		own := &startups{}
		_, err = decode.Run(bytes.NewReader(in), decode.Config{}, own)
		testrig.Must(t, err)
		seen += len(own.texts)
		if d := cmp.Diff(strings.Join(own.texts, "\n"), luaFields(t, file)); d != "" {
			t.Errorf("%s: tshark differs (-ours +tshark's):\n%s", file, d)
		}
	}
	if seen < 50 {
		t.Errorf("only %d frames of revision 2", seen)
	}
}

// luaFields is what tshark reads.
func luaFields(t *testing.T, file string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A port such as SMB Direct's belongs to another dissector, which would be asked first.
	args := []string{"-o", "tcp.try_heuristic_first:TRUE", "-X", "lua_script:../cmd/iwarp/mpa2.lua", "-r", file,
		"-Y", "iwarp_mpa2", "-T", "fields", "-e", "frame.number"}
	for _, name := range []string{"a", "b", "c", "d", "ird", "ord", "error"} {
		args = append(args, "-e", "iwarp_mpa2."+name)
	}
	cmd := exec.CommandContext(ctx, "tshark", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		testrig.Lacks(t, fmt.Sprintf("tshark: %v: %s", err, &errs))
	}
	if bytes.Contains(errs.Bytes(), []byte("Lua:")) {
		t.Errorf("%s", &errs)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// madeUpStartups is a capture of Requests and Replies with each flag, and depths at their bounds.
func madeUpStartups(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{})
	testrig.Must(t, err)
	now := time.Unix(1000, 0)
	for i, e := range []mpa.Enhanced{{}, {A: true}, {A: true, B: true, IRD: 1}, {A: true, C: true, ORD: 1},
		{A: true, D: true, IRD: 0x3ffe, ORD: 0x3ffe}, {IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation}} {
		f, err := w.Open(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(40000+i)), netip.MustParseAddrPort("10.0.0.2:7174"), now)
		testrig.Must(t, err)
		for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
			testrig.Must(t, f.Send(capture.Dir(d), now, mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true,
				Rev: 2, PrivateData: append(mpa.AppendEnhanced(nil, &e), "the ULP's"...)})))
		}
	}
	testrig.Must(t, w.Flush())
	path := filepath.Join(t.TempDir(), "startups.pcapng")
	testrig.Must(t, os.WriteFile(path, file.Bytes(), 0o600))
	return path
}
