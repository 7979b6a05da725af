//go:build interop

package interop_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

type crcMode bool

const (
	crcOn  crcMode = true
	crcOff crcMode = false
)

// tshark reads a capture; what it knows of iWARP stops at MPA revision 1.
func tshark(t testing.TB, pcap string, args ...string) string {
	t.Helper()
	// nvme-tcp's heuristic takes some FPDUs for its own
	args = append([]string{"-r", pcap, "--disable-protocol", "nvme-tcp"}, args...)
	p := startHost(t, "tshark", args...)
	p.WantSuccess(t, 60*time.Second)
	return p.Output()
}

// Two complaints about Requests and Replies are expected: revision 2 and its
// S bit are later than the RFC that tshark checks against.
var knownGaps = regexp.MustCompile(`(?i)(rev.* not .*(1|one)|res.* not .*(0|zero))`)

// wantClean checks that tshark finds nothing wrong in a capture of iWARP, and
// that it has found iWARP at all.
func wantClean(t testing.TB, pcap string, crc crcMode) {
	t.Helper()
	for line := range strings.Lines(tshark(t, pcap, "-T", "fields", "-e", "frame.number", "-e", "frame.protocols",
		"-e", "_ws.expert.message", "-Y", "iwarp_mpa && (_ws.malformed || _ws.expert.severity >= warning)")) {
		if startup := !strings.Contains(line, "iwarp_ddp"); startup && knownGaps.MatchString(line) {
			continue
		}
		if f := strings.Split(line, "\t"); len(f) == 3 {
			t.Errorf("tshark complains: %s", strings.TrimSpace(line))
		}
	}
	text := tshark(t, pcap, "-O", "iwarp_mpa,iwarp_ddp_rdmap")
	fpdus, good := strings.Count(text, "ULPDU length:"), strings.Count(text, "(Good CRC32)")
	if fpdus == 0 || strings.Contains(text, "Bad CRC32") || crc == crcOn && good != fpdus {
		t.Errorf("tshark finds %d FPDUs, %d of them with a good CRC", fpdus, good)
	}
}

// capture writes what passes loopback's TCP port to a file until stop is called.
func capture(t testing.TB, port string) (pcap string, stop func()) {
	t.Helper()
	if _, err := exec.LookPath("tcpdump"); err != nil {
		skip(t, err.Error())
	}
	pcap = filepath.Join(t.TempDir(), "lo.pcap")
	p := startHost(t, "tcpdump", "-i", "lo", "-U", "--immediate-mode", "-B", "8192", "-Z", "root", "-w", pcap, "tcp port "+port)
	if !poll(10*time.Second, func() bool { return strings.Contains(p.Output(), "listening on") || p.ended() }) || p.ended() {
		skip(t, fmt.Sprintf("tcpdump cannot listen on lo: %s", p.Output()))
	}
	return pcap, func() {
		time.Sleep(500 * time.Millisecond) // what the kernel still has for it
		p.Stop(t)
	}
}

// TestTshark has iwarp talk to itself, and another program read it.
func TestTshark(t *testing.T) {
	needIwarp(t)
	for _, size := range []int{1, 100, 1001, 65000} {
		for _, crc := range []crcMode{crcOn, crcOff} {
			flags := fmt.Sprintf("-C 5 -v -S %d --crc %s", size, onOff(bool(crc)))
			t.Run(flags, func(t *testing.T) {
				server, port := rpingServer(t, flags)
				pcap, stop := capture(t, port)
				client := iwarp(t, append([]string{"rping", "-c", "-a", "127.0.0.1", "-p", port}, strings.Fields(flags)...)...)
				client.WantSuccess(t, 10*time.Second)
				server.WantSuccess(t, 10*time.Second)
				wantPings(t, client.Output(), server.Output(), 5, size)
				stop()
				wantClean(t, pcap, crc)
			})
		}
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
