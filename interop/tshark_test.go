//go:build interop

package interop_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	fpdus, want := 0, crcUnchecked
	if crc == crcOn {
		want = crcGood
	}
	for _, e := range wantAgreement(t, pcap) {
		if e.startup != nil {
			continue
		}
		fpdus++
		if e.fpdu.crc != want {
			t.Errorf("offset %d: %v, want CRC %s", e.offset, e, want)
		}
	}
	if fpdus == 0 {
		t.Error("no FPDU in the capture")
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

// TestTsharkCaptures has tshark read the stored captures.
func TestTsharkCaptures(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) { wantAgreement(t, path) })
}
