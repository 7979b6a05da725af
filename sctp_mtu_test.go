package iwarp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestSCTPMTU: the MTU of a Dialer and of a ListenConfig is what the QPs of each make segments for, and Stats tell it. Messages
// of several segments arrive.
//
// Proves C11.
func TestSCTPMTU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dialer, listener, initiates, responds int }{
		{0, 0, 1426, 1426}, {1280, 0, 1206, 1426}, {592, 8220, 518, 8146},
	} {
		s := newSharers(t)
		s.dialer.ShareAssociation, s.dialer.MTU = false, c.dialer
		must(t, s.ln.Close())
		ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{MTU: c.listener, RequestTimeout: -1})
		must(t, err)
		s.ln = ln
		ini, res := s.dial()
		if i, r := ini.Stats().MULPDU, res.Stats().MULPDU; i != c.initiates || r != c.responds {
			t.Errorf("MTUs %d and %d: MULPDUs %d and %d, want %d and %d", c.dialer, c.listener, i, r, c.initiates, c.responds)
		}
		s.says(ini, res, strings.Repeat("over there ", 5000))
		s.says(res, ini, strings.Repeat("and back ", 5000))
		closeBoth(t, ini, res)
	}
	for _, mtu := range []int{-1, 1, 591, 8221} {
		if _, err := (&iwarp.Dialer{MTU: mtu}).Dial(within(t), "sctp4", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("MTU %d: dialed: %v", mtu, err)
		}
		if _, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{MTU: mtu}); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("MTU %d: listening: %v", mtu, err)
		}
	}
}

// TestMTUElsewhere: where an MTU would have no effect, it is refused.
func TestMTUElsewhere(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp4", "sctp4:kernel"} {
		if _, err := (&iwarp.Dialer{MTU: 1500}).Dial(within(t), network, "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: dialed: %v", network, err)
		}
		if _, err := iwarp.Listen(within(t), network, "127.0.0.1:0", iwarp.ListenConfig{MTU: 1500}); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: listening: %v", network, err)
		}
	}
}

// TestSCTPSharedMTU: Dialers with another MTU do not share an association.
func TestSCTPSharedMTU(t *testing.T) {
	t.Parallel()
	s := newSharers(t)
	_, one := s.dial()
	_, two := s.dial()
	s.dialer.MTU = 1280
	_, other := s.dial()
	if a, b, c := one.RemoteAddr().String(), two.RemoteAddr().String(), other.RemoteAddr().String(); a != b || a == c {
		t.Errorf("by %s, %s and %s", a, b, c)
	}
}
