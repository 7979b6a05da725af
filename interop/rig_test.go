//go:build interop

package interop_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestRig runs siw against siw, to tell a broken rig from a broken iwarp.
func TestRig(t *testing.T) {
	pcap := filepath.Join(t.TempDir(), "siw.pcap")
	server := Boot(t, Options{SIW: "accept_kick=1", Pcap: pcap})
	client := Boot(t, Options{SIW: "mpa_crc_required=1"})

	for _, size := range []int{23, 1001, 65000} {
		t.Run(fmt.Sprintf("rping %d", size), func(t *testing.T) {
			s := server.Serve(t, "rping -s -v -C 3 -S 65000")
			c := client.Start(t, rpingFrom(server.port, fmt.Sprintf("-C 3 -v -V -S %d", size)))
			c.WantSuccess(t, 30*time.Second)
			s.WantSuccess(t, 10*time.Second)
			wantPings(t, c.Output(), s.Output(), 3, size)
		})
	}
	t.Run("private data", func(t *testing.T) {
		s := server.Serve(t, "cmpd -s 7174 from-the-server")
		c := client.Start(t, fmt.Sprintf("cmpd -c $PEER_IP %s from-the-client", server.port))
		c.WantSuccess(t, 10*time.Second)
		c.WantOutput(t, "private=15:from-the-server")
		s.WantSuccess(t, 10*time.Second)
		s.WantOutput(t, "private=15:from-the-client")
	})
	t.Run("stop", func(t *testing.T) {
		s := server.Serve(t, "rping -s -P")
		s.Stop(t)
		server.Serve(t, "rping -s -P")
	})
	t.Run("capture", func(t *testing.T) {
		server.Stop(t)
		wantClean(t, pcap, crcOn)
	})
}

// TestRigSizes states what sizes the guest's rping takes as a client: below 23
// bytes there is no room for its text, above 65535 for its buffer.
func TestRigSizes(t *testing.T) {
	g := Boot(t, Options{})
	for size, status := range map[int]int{1: 22, 3: 22, 22: 22, 65536: 22, 23: 137, 65535: 137} {
		// nothing listens there: with a good size it tries, and is killed
		g.Start(t, fmt.Sprintf("timeout -s KILL 1 rping -c -a $PEER_IP -p 9 -S %d", size))
		p := g.Start(t, fmt.Sprintf("timeout -s KILL 1 rping -c -a $PEER_IP -p 9 -S %d", size))
		if got := p.Wait(t, 10*time.Second); got != status {
			t.Errorf("rping -S %d: status %d, want %d", size, got, status)
		}
	}
}
