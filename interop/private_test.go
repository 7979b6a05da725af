//go:build interop

package interop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The longest private data that siw takes in a frame of revision 2 are 252
// bytes: its limit of 256 counts the four of IRD and ORD.
var privateData = map[string]string{
	"short":   "from-iwarp",
	"longest": strings.Repeat("0123456789ab", 21),
}

// TestPrivateDataToGuest: the guest's cmpd shows what iwarp's client sends, and
// answers with data of its own.
func TestPrivateDataToGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	privateDataToGuest(t, Boot(t, Options{}))
}

func privateDataToGuest(t *testing.T, g *Guest) {
	for name, data := range privateData {
		t.Run("accepted, "+name, func(t *testing.T) {
			server := g.Serve(t, "cmpd -s 7174 from-the-guest")
			client := rpingTo(t, g, "-C 1 -d --private-data "+data)
			server.WantOutput(t, fmt.Sprintf("CONNECT_REQUEST status=0 private=%d:%s\n", len(data), data))
			server.WantOutput(t, "ESTABLISHED")
			client.WantOutput(t, "from-the-guest")
		})
	}
	t.Run("rejected", func(t *testing.T) {
		server := g.Serve(t, "cmpd -r 7174 not-from-you")
		client := rpingTo(t, g, "-C 1 -d --private-data from-iwarp")
		client.WantFailure(t, 10*time.Second)
		client.WantOutput(t, "not-from-you")
		server.WantSuccess(t, 10*time.Second)
		server.WantOutput(t, "CONNECT_REQUEST status=0 private=10:from-iwarp\n")
	})
	t.Run("revision 1", func(t *testing.T) {
		server := g.Serve(t, "cmpd -s 7174 from-the-guest")
		client := rpingTo(t, g, "-C 1 -d --peer siw --mpa-rev 1 --private-data from-iwarp")
		server.WantOutput(t, "CONNECT_REQUEST status=0 private=10:from-iwarp\n")
		client.WantOutput(t, "from-the-guest")
	})
}

// TestPrivateDataFromGuest: iwarp's server shows what cmpd sends, and cmpd shows
// what comes with an accepting and with a rejecting Reply.
func TestPrivateDataFromGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	privateDataFromGuest(t, Boot(t, Options{}))
}

func privateDataFromGuest(t *testing.T, g *Guest) {
	for name, data := range privateData {
		t.Run("accepted, "+name, func(t *testing.T) {
			server, port := rpingServer(t, g, "-d --private-data "+data)
			client := g.Start(t, fmt.Sprintf("cmpd -c $PEER_IP %s from-the-guest", port))
			client.WantSuccess(t, 10*time.Second)
			client.WantOutput(t, fmt.Sprintf("ESTABLISHED status=0 private=%d:%s\n", len(data), data))
			server.WantOutput(t, "from-the-guest")
		})
	}
	t.Run("rejected", func(t *testing.T) {
		server, port := rpingServer(t, g, "-P -d --reject not-from-you")
		for range 2 {
			client := g.Start(t, fmt.Sprintf("cmpd -c $PEER_IP %s from-the-guest", port))
			if status := client.Wait(t, 10*time.Second); status != cmpdRejected {
				t.Errorf("cmpd: status %d, want %d", status, cmpdRejected)
			}
			client.WantOutput(t, "RDMA_CM_EVENT_REJECTED")
			client.WantOutput(t, "private=12:not-from-you\n")
		}
		server.WantOutput(t, "from-the-guest")
	})
}

// cmpdRejected is how cmpd -c ends when it is rejected, not merely cut off.
const cmpdRejected = 3
