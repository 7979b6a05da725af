package iwarp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestBadOffers makes the same mistakes in each role, and with a preset: each is an ErrInvalid that names the setting, once.
func TestBadOffers(t *testing.T) {
	siw, err := iwarp.LookupPreset("siw")
	must(t, err)
	long := make([]byte, 600)
	for _, c := range []struct {
		what   string
		dialer iwarp.Dialer
		words  string
	}{
		{"private data", iwarp.Dialer{MPA: mpa.Offer{PrivateData: long}}, "Dialer.MPA: mpa: bad offer"},
		{"private data for siw", iwarp.Dialer{Preset: &siw, MPA: mpa.Offer{PrivateData: long}}, "Dialer.MPA: preset siw: 600 octets"},
		{"IRD", iwarp.Dialer{MPA: mpa.Offer{IRD: 0x4000}}, "IRD 16384, ORD 0: at most 16382 each"},
		{"kind", iwarp.Dialer{MPA: mpa.Offer{Kind: 99}}, "Dialer.MPA: mpa: bad offer or answer: there is no kind 99"},
	} {
		_, err := c.dialer.Dial(within(t), "tcp", "127.0.0.1:1")
		wantSaid(t, c.what, err, iwarp.ErrInvalid, c.words)
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
	must(t, err)
	ln := listen(t, iwarp.ListenConfig{})
	p, req := ask(t, ln, frame(request(1)))
	for _, c := range []struct {
		what  string
		cfg   iwarp.AcceptConfig
		words string
	}{
		{"private data", iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: make([]byte, 600)}}, "AcceptConfig.MPA: mpa: bad offer or answer: 600 octets"},
		{"private data for siw", iwarp.AcceptConfig{Preset: &siw, MPA: mpa.Answer{PrivateData: make([]byte, 600)}}, "AcceptConfig.MPA: preset siw: 600 octets"},
		{"kind", iwarp.AcceptConfig{MPA: mpa.Answer{Kind: 99}}, "AcceptConfig.MPA: mpa: bad offer or answer: there is no kind 99"},
	} {
		_, err := req.Accept(within(t), c.cfg)
		wantSaid(t, c.what, err, iwarp.ErrInvalid, c.words)
		wantOnce(t, err)
	}
	_, err = req.Reject(make([]byte, 600))
	wantSaid(t, "rejection", err, iwarp.ErrInvalid, "reject ", "600 octets of private data")
	wantOnce(t, err)
	_, err = req.Reject(nil)
	must(t, err)
	p.wantFrame(mpa.KeyReply)
}

// wantOnce expects the package's name and "kind" once each in an error.
func wantOnce(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); strings.Count(s, "iwarp:") != 1 || strings.Contains(s, "kind kind") || !strings.HasPrefix(s, "iwarp: ") {
		t.Errorf("%q", s)
	}
}

// TestListenRefuses what nothing can be served with.
func TestListenRefuses(t *testing.T) {
	for words, cfg := range map[string]iwarp.ListenConfig{
		"ListenConfig.Dialects: there is no dialect 99":                  {Dialects: []mpa.Dialect{mpa.DialectRFC5044, 99}},
		"RNICConfig.Kind: mpa: bad offer or answer: there is no kind 99": {RNIC: iwarp.NewRNIC(iwarp.RNICConfig{Kind: 99})},
		"RNICConfig.Kind: mpa: bad offer or answer: there is no kind 98": {PD: newPD(t, newRNIC(t, iwarp.RNICConfig{Kind: 98}))},
	} {
		for _, network := range []string{"tcp", "sctp"} {
			_, err := iwarp.Listen(context.Background(), network, "127.0.0.1:0", cfg)
			wantSaid(t, network, err, iwarp.ErrInvalid, words)
		}
	}
}

// TestLimitOfNothing is one that a single request exceeds: there is no sum to tell of.
func TestLimitOfNothing(t *testing.T) {
	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: 2}}))
	_, err := (&iwarp.Dialer{PD: pd, MPA: mpa.Offer{IRD: 5}}).Dial(within(t), "tcp", "127.0.0.1:1")
	wantSaid(t, "IRD", err, iwarp.ErrLimit, "IRD of a connection: 5 wanted, the limit is 2")
}
