//go:build interop

package interop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// sizes are those of one byte up to rping's largest round one. 1, 3 and 1001
// leave pads of every length; 4096 and 65000 take several FPDUs.
var sizes = []struct{ size, count int }{{1, 3}, {3, 3}, {100, 1000}, {1001, 10}, {4096, 10}, {65000, 3}}

// rpingMin is the smallest size that rdma-core's rping takes as a client; as a
// server it serves any.
const rpingMin = 23

// TestRpingToGuest: iwarp's clients, one after the other, and the guest's
// persistent server, which reads from and writes to the client's memory.
func TestRpingToGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	rpingToGuest(t, Boot(t, Options{}))
}

func rpingToGuest(t *testing.T, g *Guest) {
	for _, c := range sizes {
		t.Run(fmt.Sprintf("size %d", c.size), func(t *testing.T) {
			server := g.Serve(t, "rping -s -P -v -S 65000")
			client := rpingTo(t, g, fmt.Sprintf("-C %d -S %d -v -V", c.count, c.size))
			client.WantSuccess(t, 60*time.Second)
			server.WantOutput(t, "DISCONNECT")
			wantPings(t, client.Output(), server.Output(), c.count, c.size)
		})
	}
	t.Run("server for one client", func(t *testing.T) {
		server := g.Serve(t, "rping -s -v -C 5")
		client := rpingTo(t, g, "-C 5 -v -V")
		client.WantSuccess(t, 20*time.Second)
		server.WantSuccess(t, 10*time.Second)
		wantPings(t, client.Output(), server.Output(), 5, 64)
	})
	t.Run("clients of one server", func(t *testing.T) {
		server := g.Serve(t, "rping -s -P -v -S 65000")
		// one after the other: of several at once rping -P forgets some
		for range 5 {
			rpingTo(t, g, "-C 10 -S 1001 -v -V").WantSuccess(t, 20*time.Second)
		}
		if n := len(pings(server.Output(), serverPing)); n != 50 {
			t.Errorf("the server showed %d pings, want 50", n)
		}
	})
}

// TestRpingFromGuest: the guest's clients and iwarp's server.
func TestRpingFromGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	rpingFromGuest(t, Boot(t, Options{}))
}

func rpingFromGuest(t *testing.T, g *Guest) {
	for _, c := range sizes {
		if c.size < rpingMin {
			continue
		}
		t.Run(fmt.Sprintf("size %d", c.size), func(t *testing.T) {
			server, port := rpingServer(t, g, fmt.Sprintf("-v -C %d -S %d", c.count, c.size))
			client := g.Start(t, rpingFrom(port, fmt.Sprintf("-C %d -S %d -v -V", c.count, c.size)))
			client.WantSuccess(t, 60*time.Second)
			server.WantSuccess(t, 10*time.Second)
			wantPings(t, client.Output(), server.Output(), c.count, c.size)
		})
	}
	t.Run("clients of one server", func(t *testing.T) {
		server, port := rpingServer(t, g, "-P -v -S 65000")
		for range 3 {
			g.Start(t, rpingFrom(port, "-C 10 -S 1001 -v -V")).WantSuccess(t, 20*time.Second)
		}
		together(t, func() *Proc { return g.Start(t, rpingFrom(port, "-C 10 -S 4096 -v -V")) })
		if n := len(pings(server.Output(), serverPing)); n != 60 {
			t.Errorf("the server showed %d pings, want 60", n)
		}
	})
}

// together runs three clients at the same time.
func together(t *testing.T, start func() *Proc) {
	t.Helper()
	var clients []*Proc
	for range 3 {
		clients = append(clients, start())
	}
	for _, c := range clients {
		c.WantSuccess(t, 30*time.Second)
		if n := len(pings(c.Output(), clientPing)); n != 10 {
			t.Errorf("%s: showed %d pings, want 10", c.name, n)
		}
	}
}

// TestLateThread: what is forgiven is this, and nothing like it.
func TestLateThread(t *testing.T) {
	const end = "server DISCONNECT EVENT...\nwait for RDMA_READ_ADV state 10\nrdma_get_cm_event: Bad file descriptor\n\nRIG-STATUS 255\n"
	for out, want := range map[string]bool{
		"server ping data: rdma-ping-1\n" + end:                          true,
		strings.Replace(end, "wait for RDMA_READ_ADV state 10\n", "", 1): true,
		strings.Replace(end, "server", "client", 1):                      true,
		strings.TrimPrefix(end, "server DISCONNECT EVENT...\n"):          false,
		strings.Replace(end, "Bad file", "No such file", 1):              false,
		strings.Replace(end, "RDMA_READ_ADV", "FOO\nfailed", 1):          false,
	} {
		if status := guestStatus(out); (status == 0) != want {
			t.Errorf("status %d of %q", status, out)
		}
	}
}
