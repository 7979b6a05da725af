//go:build interop

package interop_test

import (
	"testing"
	"time"
)

// TestMarkers: siw does without markers. It rejects a Request that asks for
// them, and does not go on after a Reply that does.
func TestMarkers(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{})
	t.Run("to the guest", func(t *testing.T) {
		g.Serve(t, "rping -s")
		client := rpingTo(t, g, "-C 1 --markers")
		client.WantFailure(t, 10*time.Second)
		client.WantOutput(t, "markers")
	})
	t.Run("from the guest", func(t *testing.T) {
		server, port := rpingServer(t, "-C 1 --markers")
		client := g.Start(t, rpingFrom(port, "-C 1"))
		client.WantOutput(t, "cma event RDMA_CM_EVENT")
		server.WantFailure(t, 10*time.Second)
	})
	t.Run("the guest goes on", func(t *testing.T) {
		g.Serve(t, "rping -s -P")
		rpingTo(t, g, "-C 3 -V").WantSuccess(t, 10*time.Second)
	})
}

// rtrCase: what siw has (rtr_type), what iwarp is told, and what comes of it.
type rtrCase struct{ siw, iwarp, want string }

// TestRTRToGuest: the first FPDU is iwarp's, and of the kind agreed upon. siw's
// responder takes part whatever its peer_to_peer says, and likes a Write best.
func TestRTRToGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{SIW: "peer_to_peer=1"})
	for _, c := range []rtrCase{
		{"1", "--rtr write", "rtr=write"},
		{"2", "--rtr read", "rtr=read"},
		{"3", "--rtr write,read", "rtr=write"},
		{"3", "--rtr write,read,send", "rtr=write"},
		{"3", "--rtr read --crc on", "rtr=read"},
		{"3", "--p2p=false", "revision=2"},
	} {
		t.Run(c.siw+" "+c.iwarp, func(t *testing.T) {
			g.Set(t, "rtr_type="+c.siw)
			server := g.Serve(t, "rping -s -v -C 3")
			client := rpingTo(t, g, "-C 3 -v -V -d "+c.iwarp)
			client.WantSuccess(t, 20*time.Second)
			server.WantSuccess(t, 10*time.Second)
			wantPings(t, client.Output(), server.Output(), 3, 64)
			wantNegotiated(t, client, c.want)
		})
	}
}

// TestRTRFromGuest: siw sends the first FPDU, of a kind that both have.
func TestRTRFromGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{SIW: "peer_to_peer=1"})
	for _, c := range []rtrCase{
		{"1", "--rtr write", "rtr=write"},
		{"1", "--rtr write,read,send", "rtr=write"},
		{"2", "--rtr read", "rtr=read"},
		{"2", "--rtr write,read,send", "rtr=read"},
		{"3", "--rtr write", "rtr=write"},
		{"3", "--rtr read", "rtr=read"},
	} {
		t.Run(c.siw+" "+c.iwarp, func(t *testing.T) {
			g.Set(t, "rtr_type="+c.siw)
			server, port := rpingServer(t, "-C 3 -v -d "+c.iwarp)
			client := g.Start(t, rpingFrom(port, "-C 3 -v -V"))
			client.WantSuccess(t, 20*time.Second)
			server.WantSuccess(t, 10*time.Second)
			wantPings(t, client.Output(), server.Output(), 3, 64)
			wantNegotiated(t, server, c.want)
		})
	}
}
