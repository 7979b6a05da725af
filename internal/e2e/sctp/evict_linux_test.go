package sctp

import (
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestSCTPTurnedAside: of the sessions that wait for Accept, the oldest of an address that has two gives way to that of
// an address that has none, and is counted no longer. (Linux has the whole of 127/8.)
//
// Proves Z04.
func TestSCTPTurnedAside(t *testing.T) {
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), MaxHalfOpen: 2, MaxPerSource: 2}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.RNIC().Close() // with its QPs
	asks := func(from string, waiting int) *rig.SCTPPeer {
		p := rig.NewSCTPPeerFrom(t, ln, net.ParseIP(from))
		p.Says(17, "\x00\x00\x00\x01")
		rig.Until(t, func() bool { return ln.Stats().Waiting == waiting }, "a Request that waits")
		return p
	}
	oldest := asks("127.0.0.1", 1)
	asks("127.0.0.1", 2)
	before := ln.Stats().Evicted
	rig.NewSCTPPeerFrom(t, ln, net.IPv4(127, 0, 0, 2)).Says(17, "\x00\x00\x00\x01")
	if m := oldest.Hears(); string(m.Data) != "\x00\x00\x00\x04" {
		t.Errorf("the oldest hears % x", m.Data)
	}
	rig.Until(t, func() bool { return ln.Stats().Waiting == 2 }, "the other's Request")
	if s := ln.Stats(); s.Evicted != before+1 || s.Started != 3 {
		t.Errorf("counted %+v", s)
	}
	for range 2 {
		req, err := ln.Accept(rig.Within(t))
		rig.Must(t, err)
		_, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
		rig.Must(t, err)
	}
	asks("127.0.0.1", 1) // for which there is room again
}
