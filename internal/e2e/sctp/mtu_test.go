package sctp

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestSCTPMTU: the MTU of the Network of a Dialer, or of a ListenConfig, is what its QPs make segments for, and Stats
// tell it. Messages of several segments arrive.
//
// Proves C11.
func TestSCTPMTU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dialer, listener, initiates, responds int }{
		{0, 0, 1426, 1426}, {1280, 0, 1206, 1426}, {592, 8220, 518, 8146},
	} {
		s := newSharers(t)
		s.dialer.Network = &iwarpsctp.Network{MTU: c.dialer}
		rig.Must(t, s.ln.Close())
		ln, err := (&iwarp.ListenConfig{Network: &iwarpsctp.Network{MTU: c.listener}, RequestTimeout: -1}).Listen(
			rig.Within(t), "sctp4", "127.0.0.1:0")
		rig.Must(t, err)
		s.ln = ln
		ini, res := s.dial()
		if i, r := ini.Stats().MULPDU, res.Stats().MULPDU; i != c.initiates || r != c.responds {
			t.Errorf("MTUs %d and %d: MULPDUs %d and %d, want %d and %d",
				c.dialer, c.listener, i, r, c.initiates, c.responds)
		}
		s.says(ini, res, strings.Repeat("over there ", 5000))
		s.says(res, ini, strings.Repeat("and back ", 5000))
		rig.CloseBoth(t, ini, res)
	}
	for _, mtu := range []int{-1, 1, 591, 8221} {
		over := &iwarpsctp.Network{MTU: mtu}
		if _, err := (&iwarp.Dialer{Network: over}).Dial(rig.Within(t), "sctp4",
			"127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("MTU %d: dialed: %v", mtu, err)
		}
		if _, err := (&iwarp.ListenConfig{Network: over}).Listen(
			rig.Within(t), "sctp4", "127.0.0.1:0"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("MTU %d: listening: %v", mtu, err)
		}
	}
}

// TestMTUElsewhere: where an MTU would have no effect, it is refused.
func TestMTUElsewhere(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp4", "sctp4:kernel"} {
		over := &iwarpsctp.Network{MTU: 1500}
		if _, err := (&iwarp.Dialer{Network: over}).Dial(rig.Within(t), network,
			"127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: dialed: %v", network, err)
		}
		if _, err := (&iwarp.ListenConfig{Network: over}).Listen(
			rig.Within(t), network, "127.0.0.1:0"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: listening: %v", network, err)
		}
	}
}

// TestSCTPSharedMTU: Dials over another Network, such as one with another MTU, do not share an association.
func TestSCTPSharedMTU(t *testing.T) {
	t.Parallel()
	s := newSharers(t)
	_, one := s.dial()
	_, two := s.dial()
	s.dialer.Network = &iwarpsctp.Network{MTU: 1280, ShareAssociations: true}
	_, other := s.dial()
	if a, b, c := one.RemoteAddr().String(), two.RemoteAddr().String(), other.RemoteAddr().String(); a != b || a == c {
		t.Errorf("by %s, %s and %s", a, b, c)
	}
}
