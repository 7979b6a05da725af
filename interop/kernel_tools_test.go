//go:build interop

package interop_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kernelTools runs iwarp's tools over the kernel's SCTP: perf with itself; and probe and conform, which play a peer in
// UDP, with rping's server. A socket answers in UDP only if net.sctp.udp_port was set before it was made.
func kernelTools(t *testing.T, g *Guest) {
	t.Run("perf", func(t *testing.T) {
		p := g.Start(t, "iwarp perf --table --network sctp:kernel --size 1001 --duration 50ms --tcp off 2>/dev/null")
		p.WantSuccess(t, 60*time.Second)
		p.WantOutput(t, "All data was verified.")
		for _, op := range []string{"Send", "Write", "Read"} {
			if !regexp.MustCompile(`(?m)^ ` + op + ` +1001 `).MatchString(p.Output()) {
				t.Errorf("no row of %s", op)
			}
		}
	})
	g.Start(t, fmt.Sprintf("ip link set lo mtu 1500; cd /proc/sys/net/sctp; echo %d >udp_port && echo 0 >encap_port",
		rpingPort)).WantSuccess(t, 10*time.Second)
	t.Run("probe", func(t *testing.T) {
		kernelServer(t, g, "")
		p := g.Start(t, fmt.Sprintf("iwarp probe --network sctp 127.0.0.1:%d 2>/dev/null", rpingPort))
		p.WantSuccess(t, 60*time.Second)
		p.WantOutput(t, "Sessions               plain (RFC 5043), enhanced (RFC 6581)\n")
		p.WantOutput(t, "Indication             1\n")
	})
	t.Run("conform", func(t *testing.T) {
		kernelServer(t, g, "")
		wantConforms(t, g, rpingAddr, 30)
	})
	t.Run("conform, rejections", func(t *testing.T) {
		kernelServer(t, g, "--reject no")
		wantConforms(t, g, "--app reject --run reject "+rpingAddr, 2)
	})
	g.Start(t, fmt.Sprintf("cd /proc/sys/net/sctp; echo 9899 >udp_port && echo %d >encap_port",
		rpingPort)).WantSuccess(t, 10*time.Second)
	t.Run("conform, as the client", func(t *testing.T) {
		wantConforms(t, g, "--listen "+rpingAddr+" --exec 'iwarp rping -c -a {host} -p {port} --network sctp:kernel -C 1'", 25)
	})
}

// rpingAddr is where a peer in UDP is, or comes to.
var rpingAddr = fmt.Sprintf("127.0.0.1:%d", rpingPort)

// kernelServer starts rping's server.
func kernelServer(t *testing.T, g *Guest, flags string) {
	t.Helper()
	g.Start(t, fmt.Sprintf("iwarp rping -s -P -d -a 127.0.0.1 --network sctp:kernel -p %d %s",
		rpingPort, flags)).WantOutput(t, "listening on")
}

// wantConforms wants so many cases of conform to pass, at least, and none to fail.
func wantConforms(t *testing.T, g *Guest, flags string, least int) {
	t.Helper()
	p := g.Start(t, fmt.Sprintf("iwarp conform --network sctp %s", flags))
	p.WantSuccess(t, 60*time.Second)
	passed := regexp.MustCompile(`(\d+) passed, 0 failed, \d+ not applicable, 0 inconclusive`).FindStringSubmatch(
		p.Output())
	if passed == nil {
		t.Fatalf("not all have passed: %s", p.Output()[strings.LastIndex(strings.TrimSpace(p.Output()), "\n"):])
	}
	if n, _ := strconv.Atoi(passed[1]); n < least {
		t.Errorf("%d cases have passed, want %d at least", n, least)
	}
}
