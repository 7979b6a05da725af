//go:build interop

package interop_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/wording"
)

type crcMode bool

const (
	crcOn  crcMode = true
	crcOff crcMode = false
)

// wantClean checks that tshark reads a capture of iWARP as our decoders do, and
// that each FPDU has a good CRC where it should have one.
func wantClean(t testing.TB, pcap string, crc crcMode) {
	t.Helper()
	fpdus, want := 0, decode.CRCOff
	if crc == crcOn {
		want = decode.CRCRight
	}
	for _, e := range wantAgreement(t, pcap) {
		if e.startup != nil {
			continue
		}
		fpdus++
		if e.fpdu.CRC != want {
			t.Errorf("offset %d: %v, want CRC %v", e.offset, e, want)
		}
	}
	if fpdus == 0 {
		t.Error("no FPDU in the capture")
	}
}

// tap writes what passes loopback's TCP port to a file until stop is called.
func tap(t testing.TB, port string) (pcap string, stop func()) {
	t.Helper()
	if _, err := exec.LookPath("tcpdump"); err != nil {
		testrig.Lacks(t, err.Error())
	}
	pcap = filepath.Join(t.TempDir(), "lo.pcap")
	p := startHost(t, "tcpdump", "-i", "lo", "-U", "--immediate-mode", "-B", "8192", "-Z", "root",
		"-w", pcap, "tcp port "+port)
	if !poll(10*time.Second, func() bool { return strings.Contains(p.Output(), "listening on") || p.ended() }) ||
		p.ended() {
		testrig.Lacks(t, fmt.Sprintf("tcpdump cannot listen on lo: %s", p.Output()))
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
			flags := fmt.Sprintf("-S %d --crc %s", size, wording.OnOff(bool(crc)))
			t.Run(flags, func(t *testing.T) { wantClean(t, captureRping(t, 5, size, flags, flags), crc) })
		}
	}
}

// TestTsharkStartup is TestTshark with the other choices at startup.
func TestTsharkStartup(t *testing.T) {
	needIwarp(t)
	for name, flags := range map[string]struct{ server, client string }{
		"markers":           {"--markers", "--markers"},
		"markers, no CRC":   {"--markers --crc off", "--markers --crc off"},
		"markers to server": {"--markers", ""},
		"markers to client": {"", "--markers"},
		"one CRC":           {"--crc off", "--crc on"},
		"rtr write":         {"", "--rtr write"},
		"rtr read":          {"", "--rtr read"},
		"rtr send":          {"", "--rtr send"},
		"client-server":     {"", "--p2p=false"},
		"revision 1":        {"", "--mpa-rev 1"},
		"private data":      {"--private-data from-the-server", "--private-data from-the-client"},
	} {
		t.Run(name, func(t *testing.T) {
			crc := crcMode(!strings.Contains(flags.client, "--crc off"))
			wantClean(t, captureRping(t, 3, 1001, flags.server+" -S 1001", flags.client+" -S 1001"), crc)
		})
	}
}

// TestTsharkPorts has them talk at ports that tshark has for other protocols: a port drawn by
// chance may be one of these, too.
func TestTsharkPorts(t *testing.T) {
	needIwarp(t)
	for _, port := range []string{"19543", "20000", "27017"} { // T7's ETI, DNP3, MongoDB over TLS
		t.Run(port, func(t *testing.T) { wantClean(t, captureRpingAt(t, port, 3, 1001, "-S 1001", "-S 1001"), crcOn) })
	}
}

// captureRping captures pings between two rpings of iwarp's.
func captureRping(t *testing.T, count, size int, serverFlags, clientFlags string) (pcap string) {
	t.Helper()
	return captureRpingAt(t, freePort(t), count, size, serverFlags, clientFlags)
}

func captureRpingAt(t *testing.T, port string, count, size int, serverFlags, clientFlags string) (pcap string) {
	t.Helper()
	server := rpingServerAt(t, port, fmt.Sprintf("-v -C %d %s", count, serverFlags))
	pcap, stop := tap(t, port)
	args := fmt.Sprintf("rping -c -a 127.0.0.1 -p %s -v -C %d %s", port, count, clientFlags)
	client := iwarpCommand(t, strings.Fields(args)...)
	client.WantSuccess(t, 10*time.Second)
	server.WantSuccess(t, 10*time.Second)
	wantPings(t, client.Output(), server.Output(), count, size)
	stop()
	return pcap
}

// TestTsharkFailed is about connections that do not come to pings: one that is
// rejected, one that ends with a Terminate for want of a common RTR.
func TestTsharkFailed(t *testing.T) {
	needIwarp(t)
	for name, flags := range map[string]struct{ server, client string }{
		"rejected":      {"--reject not-from-you", "--private-data let-me-in"},
		"no common RTR": {"--rtr read", "--rtr write"},
	} {
		t.Run(name, func(t *testing.T) {
			_, port := rpingServer(t, new(Guest), "-C 1 "+flags.server)
			pcap, stop := tap(t, port)
			args := fmt.Sprintf("rping -c -a 127.0.0.1 -p %s -C 1 %s", port, flags.client)
			iwarpCommand(t, strings.Fields(args)...).WantFailure(t, 10*time.Second)
			stop()
			wantAgreement(t, pcap)
		})
	}
}

// TestTsharkCaptures has tshark read the stored captures: an independent reader
// and ours find the same in what siw has sent.
//
// Proves F01, F04, F05, F11, F14, Q01, D09, D10, P04, P06, P10
func TestTsharkCaptures(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) { wantAgreement(t, path) })
}
