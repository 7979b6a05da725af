//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// needIwarp skips a test that needs the iwarp command where there is none.
func needIwarp(t testing.TB) {
	t.Helper()
	if os.Getenv("IWARP_BIN") == "" {
		testrig.Lacks(t, "IWARP_BIN does not name an iwarp command; interop/run builds one")
	}
}

// iwarpCommand starts the iwarp command on the host.
func iwarpCommand(t testing.TB, args ...string) *Proc {
	t.Helper()
	return startHost(t, os.Getenv("IWARP_BIN"), args...)
}

// rpingTo starts iwarp's rping as a client of the guest's server: the command, or over a TCP in user space, which is
// this process's own, what it consists of.
func rpingTo(t testing.TB, g *Guest, flags string) *Proc {
	t.Helper()
	if g.stack != nil {
		return rpingHereTo(t, g, flags)
	}
	args := []string{"rping", "-c", "-a", "127.0.0.1", "-p", g.port}
	return iwarpCommand(t, append(args, strings.Fields(flags)...)...)
}

// rpingServer starts iwarp's rping as a server on a free port of the host's
// 127.0.0.1, or on the guest's link, and waits until it listens.
func rpingServer(t testing.TB, g *Guest, flags string) (p *Proc, port string) {
	t.Helper()
	if g.stack != nil {
		return rpingServerHere(t, g, flags)
	}
	port = freePort(t)
	return rpingServerAt(t, port, flags), port
}

// rpingServerAt is rpingServer on the host at a given port.
func rpingServerAt(t testing.TB, port, flags string) *Proc {
	t.Helper()
	args := []string{"rping", "-s", "-a", "127.0.0.1", "-p", port}
	p := iwarpCommand(t, append(args, strings.Fields(flags)...)...)
	if !poll(10*time.Second, func() bool { return listening(port) || p.ended() }) || p.ended() {
		t.Fatalf("%s: does not listen", p.name)
	}
	return p
}

// listening looks into the kernel's table, since a connection made to find out
// would be taken for a client.
func listening(port string) bool {
	var n int
	fmt.Sscan(port, &n)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(file)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) {
				return true
			}
		}
	}
	return false
}

// rpingFrom is the guest's rping as a client of a server on the host. One that
// cannot connect hangs for ever, hence the timeout.
func rpingFrom(port, flags string) string {
	return fmt.Sprintf("timeout -s KILL 60 rping -c -a $PEER_IP -p %s %s", port, flags)
}

// wantNegotiated checks the line in which iwarp -d tells the parameters.
func wantNegotiated(t testing.TB, p *Proc, want ...string) {
	t.Helper()
	p.WantOutput(t, "negotiated:")
	var fields []string
	for line := range strings.Lines(p.Output()) {
		if rest, ok := strings.CutPrefix(line, "negotiated:"); ok {
			fields = strings.Fields(rest)
		}
	}
	for _, w := range want {
		if !slices.Contains(fields, w) {
			t.Errorf("%s: negotiated %v, want %s", p.name, fields, w)
		}
	}
}

// pings returns the data of the lines that begin with prefix: "ping data: "
// from a client, "server ping data: " from a server.
func pings(out, prefix string) []string {
	var data []string
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			data = append(data, strings.TrimSuffix(rest, "\n"))
		}
	}
	return data
}

const (
	clientPing = "ping data: "
	serverPing = "server ping data: "
)

// wantPings checks that client and server printed the same data, that these
// are what rping sends, and how many and how long they are. Data that arrived
// on both sides as they left have gone through Reads and Writes whole.
func wantPings(t testing.TB, client, server string, count, size int) {
	t.Helper()
	got, read := pings(client, clientPing), pings(server, serverPing)
	if len(got) != count || len(read) != count {
		t.Fatalf("%d pings shown by the client and %d by the server, want %d", len(got), len(read), count)
	}
	for i := range got {
		// rping ends its data with a NUL, which is not shown
		want := fmt.Sprintf("rdma-ping-%d: ", i)
		want = want[:min(len(want), size-1)]
		if got[i] != read[i] || len(got[i]) != size-1 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("ping %d: client %q, server %q, want %d bytes that begin with %q",
				i, brief(got[i]), brief(read[i]), size-1, want)
		}
	}
}
