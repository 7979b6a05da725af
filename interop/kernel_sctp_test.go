//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKernelSCTP runs DDP over the SCTP of Linux's kernel, which the hosts of these tests do not have: iwarp, and tests
// of ours, are linked statically and run in the guest.
func TestKernelSCTP(t *testing.T) {
	needIwarp(t)
	pcap := filepath.Join(t.TempDir(), "sctp.pcap")
	g := Boot(t, Options{Pcap: pcap, Put: map[string]string{
		"bin/iwarp":           static(t, "build", "./cmd/iwarp"),
		"bin/sctpkernel.test": static(t, "test -c", "./internal/sctpkernel"),
		"bin/iwarp.test":      static(t, "test -c", "."),
	}})
	g.Start(t, "modprobe sctp").WantSuccess(t, 20*time.Second)

	t.Run("carrier", func(t *testing.T) {
		p := g.Start(t, "sctpkernel.test -test.v -test.timeout 100s")
		p.WantSuccess(t, 110*time.Second)
		wantPassed(t, p.Output(), "", 5)
	})
	t.Run("verbs", func(t *testing.T) {
		names := dialogues(t)
		p := g.Start(t, fmt.Sprintf("iwarp.test -test.v -test.timeout 100s -test.run '^(%s)$/^SCTP_of_the_kernel$'",
			strings.Join(names, "|")))
		p.WantSuccess(t, 110*time.Second)
		wantPassed(t, p.Output(), "/SCTP_of_the_kernel", len(names))
	})
	t.Run("rping", func(t *testing.T) {
		for _, size := range []int{1, 1001, 65000} {
			pingOverSCTP(t, g, "sctp:kernel", "sctp:kernel", size)
		}
	})
	t.Run("tools", func(t *testing.T) { kernelTools(t, g) })
	t.Run("and user space", func(t *testing.T) { kernelAndUser(t, g) })
	t.Run("and the host", func(t *testing.T) { kernelAndHost(t, g, pcap) })
}

// static links a program for the guest, which has no Go.
func static(t *testing.T, how, pkg string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	args := append(strings.Fields(how), "-o", path, pkg)
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return path
}

// dialogues are the tests of the package iwarp that are led over each lower layer.
func dialogues(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\toverAll\(t, `)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 10 {
		t.Fatalf("only %d dialogues: %q", len(names), names)
	}
	return names
}

// wantPassed wants a number of tests whose names end so to have passed, at least, and none to have been skipped.
func wantPassed(t *testing.T, out, end string, least int) {
	t.Helper()
	passed := 0
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) < 3 || f[0] != "---":
		case f[1] == "SKIP:":
			t.Errorf("skipped in the guest: %s", f[2])
		case f[1] == "PASS:" && strings.HasSuffix(f[2], end):
			passed++
		}
	}
	if passed < least {
		t.Errorf("%d tests have passed, want %d", passed, least)
	}
}

// pingOverSCTP has the guest ping itself, over a network for each role, and compares the data on both sides.
func pingOverSCTP(t *testing.T, g *Guest, server, client string, size int) {
	t.Helper()
	const count = 3
	s := g.Start(t, fmt.Sprintf("iwarp rping -s --network %s -p 7174 -C %d -v -V -d", server, count))
	s.WantOutput(t, "listening on")
	c := g.Start(t, fmt.Sprintf("timeout -s KILL 60 iwarp rping -c -a 127.0.0.1 --network %s -p 7174 -C %d -v -V -S %d",
		client, count, size))
	c.WantSuccess(t, 60*time.Second)
	s.WantSuccess(t, 20*time.Second)
	wantPings(t, c.Output(), s.Output(), count, size)
}

// kernelAndUser has the two carriers meet within the guest. To the kernel a peer in UDP is one whose port it was told
// (net.sctp.encap_port), or has learned from an INIT that came to its own (net.sctp.udp_port).
//
// A packet of the kernel's is as long as the path allows: 65536 bytes on an unchanged loopback interface, which is
// more than pion takes.
func kernelAndUser(t *testing.T, g *Guest) {
	g.Start(t, "ip link set lo mtu 1500; cd /proc/sys/net/sctp; echo 7174 >udp_port && echo 0 >encap_port").WantSuccess(
		t, 10*time.Second)
	for _, size := range []int{1, 1001, 65000} {
		pingOverSCTP(t, g, "sctp:kernel", "sctp", size)
	}
	g.Start(t, "cd /proc/sys/net/sctp; echo 9899 >udp_port && echo 7174 >encap_port").WantSuccess(t, 10*time.Second)
	for _, size := range []int{1, 1001, 65000} {
		pingOverSCTP(t, g, "sctp", "sctp:kernel", size)
	}
}

// kernelAndHost has the guest's kernel meet the carrier in user space on the host, and looks at the packets between
// them.
func kernelAndHost(t *testing.T, g *Guest, pcap string) {
	port := freePort(t)
	g.Start(t, fmt.Sprintf("cd /proc/sys/net/sctp; echo 9899 >udp_port && echo %s >encap_port",
		port)).WantSuccess(t, 10*time.Second)
	const count, size = 5, 30000
	s := iwarpCommand(t, "rping", "-s", "--network", "sctp", "-a", "127.0.0.1", "-p", port, "-P", "-v", "-V", "-d")
	s.WantOutput(t, "listening on")
	c := g.Start(t, fmt.Sprintf("timeout -s KILL 60 iwarp rping -c -a $PEER_IP --network sctp:kernel -p %s -C %d -v -V -S %d", port, count, size))
	c.WantSuccess(t, 60*time.Second)
	wantPings(t, c.Output(), s.Output(), count, size)
	g.Start(t, "until [ $(wc -l </proc/net/sctp/assocs) = 1 ]; do usleep 50000; done").WantSuccess(t, 20*time.Second)
	s.Stop(t)
	g.Stop(t) // so that the capture is whole
	wantPackets(t, pcap, port)
}

// wantPackets looks at them with tshark: both sides have DDP's indication, all data is unordered, in one piece and of
// the two PPIDs, and the end is a SHUTDOWN.
func wantPackets(t *testing.T, pcap, port string) {
	t.Helper()
	fields := []string{"sctp.chunk_type", "sctp.adaptation_layer_indication", "sctp.data_payload_proto_id",
		"sctp.data_u_bit", "sctp.data_b_bit", "sctp.data_e_bit"}
	args := []string{"-r", pcap, "-d", "udp.port==" + port + ",sctp", "-Y", "sctp", "-T", "fields"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	seen := make([][]string, len(fields))
	for line := range strings.Lines(string(out)) {
		for i, all := range strings.Split(strings.TrimRight(line, "\n"), "\t") {
			for v := range strings.SplitSeq(all, ",") {
				if v != "" && !slices.Contains(seen[i], v) {
					seen[i] = append(seen[i], v)
				}
			}
		}
	}
	for _, v := range seen {
		slices.Sort(v)
	}
	want := [][]string{nil, {"0x00000001"}, {"16", "17"}, {"1"}, {"1"}, {"1"}}
	for i := range fields {
		if want[i] != nil && !slices.Equal(seen[i], want[i]) {
			t.Errorf("%s: %q, want %q", fields[i], seen[i], want[i])
		}
	}
	// DATA, INIT, ..., SHUTDOWN COMPLETE
	for _, kind := range []string{"0", "1", "2", "3", "7", "8", "10", "11", "14"} {
		if !slices.Contains(seen[0], kind) {
			t.Errorf("no chunk of type %s, but %q", kind, seen[0])
		}
	}
	if slices.Contains(seen[0], "6") || slices.Contains(seen[0], "9") {
		t.Errorf("there was an ABORT or an ERROR: chunks of types %q", seen[0])
	}
}
