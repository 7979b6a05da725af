package startup

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestBadOffers makes the same mistakes in each role, and with a preset: each is an ErrInvalid that names the setting,
// once.
func TestBadOffers(t *testing.T) {
	siw, err := iwarp.LookupPreset("siw")
	rig.Must(t, err)
	long := make([]byte, 600)
	for _, c := range []struct {
		what   string
		dialer iwarp.Dialer
		words  string
	}{
		{"private data", iwarp.Dialer{MPA: mpa.Offer{PrivateData: long}}, "Dialer.MPA: mpa: bad offer"},
		{"private data for siw", iwarp.Dialer{Preset: &siw, MPA: mpa.Offer{PrivateData: long}},
			"Dialer.MPA: preset siw: 600 bytes"},
		{"IRD", iwarp.Dialer{MPA: mpa.Offer{IRD: 0x4000}}, "IRD 16384, ORD 0: at most 16382 each"},
		{"kind", iwarp.Dialer{MPA: mpa.Offer{Kind: 99}}, "Dialer.MPA: mpa: bad offer or answer: there is no kind 99"},
	} {
		_, err := c.dialer.Dial(rig.Within(t), "tcp", "127.0.0.1:1")
		rig.WantSaid(t, c.what, err, iwarp.ErrInvalid, c.words)
		wantOnce(t, err)
		if errors.Is(err, iwarp.ErrLimit) {
			t.Errorf("%s: a limit, where there is none: %v", c.what, err)
		}
		if !errors.Is(err, mpa.ErrOffer) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// TestBadAnswers is the same for a Responder, whose Request can still be answered.
func TestBadAnswers(t *testing.T) {
	siw, err := iwarp.LookupPreset("siw")
	rig.Must(t, err)
	ln := rig.Listen(t, iwarp.ListenConfig{})
	p, req := rig.Ask(t, ln, rig.Frame(rig.Request(1)))
	for _, c := range []struct {
		what  string
		cfg   iwarp.AcceptConfig
		words string
	}{
		{"private data", iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: make([]byte, 600)}},
			"AcceptConfig.MPA: mpa: bad offer or answer: 600 bytes"},
		{"private data for siw", iwarp.AcceptConfig{Preset: &siw, MPA: mpa.Answer{PrivateData: make([]byte, 600)}},
			"AcceptConfig.MPA: preset siw: 600 bytes"},
		{"kind", iwarp.AcceptConfig{MPA: mpa.Answer{Kind: 99}},
			"AcceptConfig.MPA: mpa: bad offer or answer: there is no kind 99"},
	} {
		_, err := req.Accept(rig.Within(t), c.cfg)
		rig.WantSaid(t, c.what, err, iwarp.ErrInvalid, c.words)
		wantOnce(t, err)
	}
	err = req.Reject(make([]byte, 600))
	rig.WantSaid(t, "rejection", err, iwarp.ErrInvalid, "reject ", "600 bytes of private data")
	wantOnce(t, err)
	err = req.Reject(nil)
	rig.Must(t, err)
	p.WantFrame(mpa.KeyReply)
}

// wantOnce expects the package's name and "kind" once each in an error.
func wantOnce(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); strings.Count(s, "iwarp:") != 1 || strings.Contains(s, "kind kind") ||
		!strings.HasPrefix(s, "iwarp: ") {
		t.Errorf("%q", s)
	}
}

// TestListenRefuses what nothing can be served with.
func TestListenRefuses(t *testing.T) {
	for words, cfg := range map[string]iwarp.ListenConfig{
		"ListenConfig.Dialects: there is no dialect 99": {Dialects: []mpa.Dialect{mpa.DialectRFC5044,
			99}},
		"RNICConfig.Kind: mpa: bad offer or answer: there is no kind 99": {RNIC: iwarp.NewRNIC(
			iwarp.RNICConfig{Kind: 99})},
		"RNICConfig.Kind: mpa: bad offer or answer: there is no kind 98": {PD: rig.NewPD(t,
			rig.NewRNIC(t, iwarp.RNICConfig{Kind: 98}))},
	} {
		for network, over := range map[string]iwarp.SegmentNetwork{"tcp": nil, "sctp": new(iwarpsctp.Network)} {
			cfg.Network = over
			_, err := cfg.Listen(context.Background(), network, "127.0.0.1:0")
			rig.WantSaid(t, network, err, iwarp.ErrInvalid, words)
		}
	}
}

// TestLimitOfNothing is one that a single request exceeds: there is no sum to tell of.
func TestLimitOfNothing(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: 2}}))
	_, err := (&iwarp.Dialer{PD: pd, MPA: mpa.Offer{IRD: 5}}).Dial(rig.Within(t), "tcp", "127.0.0.1:1")
	rig.WantSaid(t, "IRD", err, iwarp.ErrLimit, "IRD of a connection: 5 wanted, the limit is 2")
}

// TestSRQSettings has settings of a Shared Receive Queue out of their ranges: the error names the setting and the
// range.
func TestSRQSettings(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
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
		rig.WantSaid(t, "CreateSRQ", err, iwarp.ErrInvalid, words)
	}
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 4, PerQP: 4, Limit: 4})
	rig.Must(t, err)
	for _, limit := range []int{-5, 5, math.MaxInt} {
		rig.WantSaid(t, "Arm", srq.Arm(limit), iwarp.ErrInvalid, "0 to the depth, 4")
	}
	for _, limit := range []int{0, 1, 4} {
		rig.Should(t, srq.Arm(limit))
	}
	rig.Must(t, srq.Close())
	rig.WantSaid(t, "Arm", srq.Arm(1), iwarp.ErrClosed, "the SRQ was closed")
}

// TestOfferBeforeTCP offers what no startup frame can say: nobody is connected to for that.
func TestOfferBeforeTCP(t *testing.T) {
	connected := errors.New("connected")
	for words, o := range map[string]mpa.Offer{
		"600 bytes of private data: at most 508": {PrivateData: make([]byte, 600)},
		"ORD 16384":                              {ORD: 1 << 14},
		"RTR":                                    {RTR: 0x80},
	} {
		d := iwarp.Dialer{MPA: o, Wrap: func(net.Conn) (net.Conn, error) { return nil, connected }}
		_, err := d.Dial(rig.Within(t), "tcp", rig.ListenTCP(t).Addr().String())
		rig.WantSaid(t, "Dial", err, mpa.ErrOffer, "Dialer.MPA", words)
		if errors.Is(err, connected) || !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
