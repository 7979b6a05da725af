//go:build interop

package interop_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A wireshark is one whose folder for extcap has iwarp extcap.
type wireshark struct {
	folder string // its own
	dir    string // in place of it
}

// newWireshark installs iwarp extcap into a folder.
func newWireshark(t *testing.T) wireshark {
	t.Helper()
	needIwarp(t)
	folders, err := exec.CommandContext(t.Context(), "tshark", "-G", "folders").Output()
	if err != nil {
		testrig.Lacks(t, err.Error())
	}
	w := wireshark{dir: t.TempDir()}
	for line := range strings.Lines(string(folders)) {
		if name, path, _ := strings.Cut(line, ":"); name == "Extcap path" || name == "Global Extcap path" {
			w.folder = strings.TrimSpace(path)
		}
	}
	p := iwarpCommand(t, "extcap", "--install", "--dir", w.dir)
	p.WantSuccess(t, 10*time.Second)
	p.WantOutput(t, "installed ")
	return w
}

// tshark starts tshark with that folder. Root's takes no folder from the environment: there the folder is mounted.
func (w wireshark) tshark(t *testing.T, args ...string) *Proc {
	t.Helper()
	if os.Getuid() != 0 {
		t.Setenv("WIRESHARK_EXTCAP_DIR", w.dir)
		return startHost(t, "tshark", args...)
	}
	if exec.CommandContext(t.Context(), "unshare", "-m", "mount", "--bind", w.dir, w.folder).Run() != nil {
		testrig.Lacks(t, "no mount namespace, in which Wireshark's folder for extcap can have a program of ours")
	}
	const mounted = `mount --bind "$1" "$2" && shift 2 && exec tshark "$@"`
	return startHost(t, "unshare", append([]string{"-m", "sh", "-c", mounted, "sh", w.dir, w.folder}, args...)...)
}

// TestExtcapListed has tshark list the source.
func TestExtcapListed(t *testing.T) {
	p := newWireshark(t).tshark(t, "-D")
	p.WantSuccess(t, 20*time.Second)
	p.WantOutput(t, "iwarp (iWARP, with DDP segments and findings)")
}

// TestExtcapFile has tshark capture from files, of revision 2 with markers and others: it finds each DDP segment.
func TestExtcapFile(t *testing.T) {
	w := newWireshark(t)
	for _, file := range []string{"iwarp-markers", "iwarp-terminate", "siw-rping-p2p-crc", "sctp/iwarp-udp"} {
		t.Run(file, func(t *testing.T) {
			in := filepath.Join("testdata", "captures", file+".pcap")
			from, err := filepath.Abs(in)
			testrig.Must(t, err)
			out := filepath.Join(t.TempDir(), "out.pcapng")
			w.tshark(t, "-i", "iwarp", "-o", "extcap.iwarp.file:"+from, "-w", out).WantSuccess(t, time.Minute)
			wantSegments(t, in, out)
		})
	}
}

// TestExtcapLive has tshark capture on lo while rping talks to itself in revision 2 with markers.
func TestExtcapLive(t *testing.T) {
	w := newWireshark(t)
	port, out := freePort(t), filepath.Join(t.TempDir(), "out.pcapng")
	p := w.tshark(t, "-i", "iwarp", "-o", "extcap.iwarp.device:lo", "-f", "127.0.0.1:"+port, "-w", out)
	if !poll(10*time.Second, func() bool { return strings.Contains(p.Output(), "Capturing on") || p.ended() }) || p.ended() {
		testrig.Lacks(t, "tshark does not capture: "+p.Output())
	}
	time.Sleep(time.Second) // until the source captures, of which tshark says nothing
	server := rpingServerAt(t, port, "-C 5 -S 1001 --markers")
	client := iwarpCommand(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "5", "-S", "1001", "--markers")
	client.WantSuccess(t, 20*time.Second)
	server.WantSuccess(t, 20*time.Second)
	time.Sleep(time.Second)
	p.Stop(t)
	if n := wantSegments(t, out, out); n != 5*7+1 {
		t.Errorf("%d DDP segments, want the RTR indication, and of 5 pings a Read, its Response, a Write, and 4 Sends", n)
	}
}

// wantSegments compares the DDP segments in a capture with those that tshark finds in what extcap has made of it.
func wantSegments(t *testing.T, file, made string) int {
	t.Helper()
	in, err := os.ReadFile(file)
	testrig.Must(t, err)
	own := &segments{}
	_, err = decode.Run(bytes.NewReader(in), decode.Config{}, own)
	testrig.Must(t, err)
	found, _ := tsharkExported(t, made)
	var theirs []string
	for i, r := range found {
		if i < len(own.terminates) {
			r.terminate = blur(r.terminate, own.terminates[i])
		}
		theirs = append(theirs, segmentText(r))
	}
	if d := cmp.Diff(own.texts, theirs); d != "" || len(theirs) == 0 {
		t.Errorf("tshark differs (-ours +tshark's):\n%s", d)
	}
	return len(theirs)
}
