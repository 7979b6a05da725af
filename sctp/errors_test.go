package sctp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// TestRules: each rule has a text of its own and a section of its document, and what is no rule has a number.
func TestRules(t *testing.T) {
	texts, rules := map[string]sctp.Rule{}, 0
	for r := range sctp.Rule(255) {
		text, section := r.String(), r.Section()
		known := strings.HasPrefix(section, "RFC ")
		if strings.HasPrefix(text, "rule ") == known || known && int(r) != rules+1 {
			t.Errorf("rule %d is %q, of %q", uint8(r), text, section)
		}
		if known {
			rules++
		}
		if other, there := texts[text]; there {
			t.Errorf("rules %d and %d are both %q", uint8(other), uint8(r), text)
		}
		texts[text] = r
	}
	if rules < int(sctp.RuleStray) {
		t.Errorf("%d rules", rules)
	}
}

// TestErrorTexts: errors say on which stream, if on one, against which rule and with what particulars; refusals say by
// whom, and with which depths if there are any.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"sctp: stream 3: an invalid DDP-SSN: so it is (RFC 5043, section 10)":        &sctp.Violation{Rule: sctp.RuleSSN, Stream: 3, Reason: "so it is"},
		"sctp: stream 0: an invalid DDP-SSN (RFC 5043, section 10)":                  &sctp.Violation{Rule: sctp.RuleSSN},
		"sctp: no Adaptation Layer Indication of DDP (RFC 5043, section 11.1)":       &sctp.Violation{Rule: sctp.RuleIndication},
		"sctp: messages outside of any session: 16 messages (RFC 5043, section 6.1)": &sctp.Violation{Rule: sctp.RuleStray, Reason: "16 messages"},
		"sctp: the peer's provider refused the session":                              &sctp.Refusal{Provider: true},
		"sctp: the peer rejected the session (private data of length 2)": &sctp.Refusal{PrivateData: []byte(
			"no"), PeerIRD: 4},
		"sctp: the peer rejected the session (private data of length 0, IRD " + mpa.Depth(4).String() + ", ORD " +
			mpa.Depth(5).String() + ")": &sctp.Refusal{Enhanced: true, PeerIRD: 4, PeerORD: 5},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for f, want := range map[sctp.Function]string{
		0: "function 0x0000", sctp.FunctionInitiate: "Initiate",
		sctp.FunctionEnhancedReject: "Enhanced Reject", 8: "function 0x0008",
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for ppid, want := range map[uint32]sctp.Function{sctp.PPIDControl: sctp.FunctionTerminate, sctp.PPIDSegment: 0} {
		if got := (&sctp.Message{PPID: ppid, Data: []byte{0, 1, 0, 4}}).Function(); got != want {
			t.Errorf("with PPID %d it is %v", ppid, got)
		}
	}
}

// TestCheckOffer names what of an Offer no session has.
func TestCheckOffer(t *testing.T) {
	for _, c := range []struct {
		offer mpa.Offer
		field string
	}{
		{mpa.Offer{}, ""},
		{mpa.Offer{Kind: mpa.KindPermissive, Dialect: mpa.DialectRFC6581}, ""},
		{mpa.Offer{Dialect: mpa.DialectRFC5044}, ""},
		{mpa.Offer{Markers: true}, "Markers"},
		{mpa.Offer{NoCRC: true}, "NoCRC"},
		{mpa.Offer{Kind: mpa.KindRDMAC}, "Kind"},
		{mpa.Offer{Dialect: mpa.DialectRevision0}, "Dialect"},
	} {
		var field string
		var wrong *sctp.OfferError
		if err := sctp.CheckOffer(c.offer); errors.As(err, &wrong) {
			field = wrong.Field
		} else if err != nil {
			t.Error(err)
		}
		if field != c.field {
			t.Errorf("%+v: %q is wrong, want %q", c.offer, field, c.field)
		}
	}
}

// TestEndOfNothing closes and aborts streams that have no session, or no longer.
func TestEndOfNothing(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.hears(0, 17, `0001 0004`)
	d.told(sctp.EventTerminate, 0)
	d.acked(0)
	d.a.Close(d.now, 0)
	d.says(0, 17, `0001 0004`)
	d.acked(0)
	d.told(sctp.EventEnded, 0)
	for _, id := range []uint16{0, 1, 77} {
		d.a.Close(d.now, id)
		d.a.Abort(d.now, id)
	}
	d.silent()
}
