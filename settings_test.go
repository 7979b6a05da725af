package iwarp_test

import (
	"errors"
	"math"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSRQSettings has settings of a Shared Receive Queue out of their ranges: the error names the setting and the range.
func TestSRQSettings(t *testing.T) {
	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	for words, cfg := range map[string]iwarp.SRQConfig{
		"SRQConfig.Depth is -1, and is to be 1 to 65536":                    {Depth: -1},
		"SRQConfig.Depth is 65537":                                          {Depth: iwarp.MaxQueueDepth + 1},
		"SRQConfig.Limit is -2":                                             {Limit: -2},
		"SRQConfig.Limit is 5, and is to be 0 to the Depth, 4":              {Depth: 4, Limit: 5},
		"SRQConfig.PerQP is -3":                                             {PerQP: -3},
		"SRQConfig.PerQP is 5, and is to be 0 (no bound) to the Depth, 4":   {Depth: 4, PerQP: 5},
		"SRQConfig.PerQP is 513, and is to be 0 (no bound) to the Depth, 5": {PerQP: 513},
	} {
		_, err := pd.CreateSRQ(cfg)
		wantSaid(t, "CreateSRQ", err, iwarp.ErrInvalid, words)
	}
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 4, PerQP: 4, Limit: 4})
	must(t, err)
	for _, limit := range []int{-5, 5, math.MaxInt} {
		wantSaid(t, "Arm", srq.Arm(limit), iwarp.ErrInvalid, "0 to the depth, 4")
	}
	for _, limit := range []int{0, 1, 4} {
		should(t, srq.Arm(limit))
	}
	must(t, srq.Close())
	wantSaid(t, "Arm", srq.Arm(1), iwarp.ErrClosed, "the SRQ was closed")
}

// TestOfferBeforeTCP offers what no startup frame can say: nobody is connected to for that.
func TestOfferBeforeTCP(t *testing.T) {
	connected := errors.New("connected")
	for words, o := range map[string]mpa.Offer{
		"600 octets of private data: at most 508": {PrivateData: make([]byte, 600)},
		"ORD 16384": {ORD: 1 << 14},
		"RTR":       {RTR: 0x80},
	} {
		d := iwarp.Dialer{MPA: o, Wrap: func(net.Conn) (net.Conn, error) { return nil, connected }}
		_, err := d.Dial(within(t), "tcp", listenTCP(t).Addr().String())
		wantSaid(t, "Dial", err, mpa.ErrOffer, "Dialer.MPA", words)
		if errors.Is(err, connected) || !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
