//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTap: user networking ends TCP in QEMU and cuts the stream anew, a tap
// does not. Both ends' own segments go into a capture, and tshark reads it.
func TestTap(t *testing.T) {
	needIwarp(t)
	needTap(t)
	pcap := filepath.Join(t.TempDir(), "tap.pcap")
	g := Boot(t, Options{
		Pcap: pcap,
		Tap:  "rping -s -v -C 20 -S 4096 & " + untilListening + " && echo RIG-READY; wait $!",
	})
	client := startHost(t, "ip", "netns", "exec", "iwarp-siw", os.Getenv("IWARP_BIN"),
		"rping", "-c", "-a", "192.168.77.2", "-C", "20", "-S", "4096", "-v", "-V", "--crc", "on")
	client.WantSuccess(t, 20*time.Second)
	g.WantSuccess(t, 20*time.Second)
	wantPings(t, client.Output(), g.Output(), 20, 4096)
	wantClean(t, pcap, crcOn)
}

// needTap asks for a tap, on which the guest's own segments are seen.
func needTap(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		testrig.Lacks(t, "a tap needs root")
	}
	if out, err := exec.Command("sh", "-c", "ip netns add iwarp-try && ip netns exec iwarp-try ip tuntap add try mode tap; s=$?; ip netns del iwarp-try; exit $s").CombinedOutput(); err != nil {
		testrig.Lacks(t, fmt.Sprintf("no tap in a network namespace here: %s", out))
	}
}
