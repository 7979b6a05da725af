package iwarp_test

import (
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/sctp"
)

// TestSCTPStats: what a peer says outside of any session, and in order, does no harm, and its RNIC counts it.
func TestSCTPStats(t *testing.T) {
	rnic, ctx := newRNIC(t, iwarp.RNICConfig{}), within(t)
	ln, err := iwarp.Listen(ctx, "sctp4", "127.0.0.1:0", iwarp.ListenConfig{RNIC: rnic})
	must(t, err)
	defer ln.Close()
	conn, err := net.Dial("udp4", ln.Addr().String())
	must(t, err)
	until, _ := ctx.Deadline()
	peer, err := script.Associate(ctx, conn, script.DDPSetup(), until)
	must(t, err)
	defer peer.Close()
	peer.Send(sctp.Message{PPID: sctp.PPIDSegment, Data: []byte{0, 0, 'A'}})
	initiate := peer.Session(0).Function(sctp.FunctionInitiate)
	initiate.Ordered = true
	peer.Send(initiate)
	if !peer.Settle(until) {
		t.Fatal("not acknowledged")
	}
	req, err := ln.Accept(ctx)
	must(t, err)
	if got := rnic.Stats().SCTP; got != (iwarp.SCTPStats{Ordered: 1, Dropped: 1}) {
		t.Errorf("counted %+v", got)
	}
	_, err = req.Reject(nil)
	must(t, err)
	if got := rnic.Stats().SCTP; got != (iwarp.SCTPStats{Ordered: 1, Dropped: 1}) {
		t.Errorf("counted twice: %+v", got)
	}
}
