package mpa_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

func anyDepth() *rapid.Generator[mpa.Depth] {
	n := rapid.OneOf(rapid.Uint16Range(0, 5), rapid.Uint16Range(0, 0x3ffe), rapid.Just[uint16](0x3fff))
	return rapid.Map(n, func(n uint16) mpa.Depth { return mpa.Depth(n) })
}

func anyOffer(dialect mpa.Dialect) *rapid.Generator[mpa.Offer] {
	return rapid.Custom(func(t *rapid.T) mpa.Offer {
		return mpa.Offer{
			Dialect:      dialect,
			Markers:      rapid.Bool().Draw(t, "M"),
			NoCRC:        rapid.Bool().Draw(t, "no CRC"),
			IRD:          anyDepth().Draw(t, "IRD"),
			ORD:          anyDepth().Draw(t, "ORD"),
			MaxIRD:       anyDepth().Draw(t, "max IRD"),
			ClientServer: rapid.Bool().Draw(t, "client-server"),
			RTR:          mpa.RTR(rapid.IntRange(0, 7).Draw(t, "RTR")),
			PrivateData:  rapid.SliceOfN(rapid.Byte(), 0, 508).Draw(t, "private data"),
		}
	})
}

func anyAnswer() *rapid.Generator[mpa.Answer] {
	return rapid.Custom(func(t *rapid.T) mpa.Answer {
		a := anyOffer(0).Draw(t, "answer").Answer()
		a.AllRTR = rapid.Bool().Draw(t, "all RTR")
		return a
	})
}

// Proves Q04, F11, F14, E02, E03, E04, E06, E07, E08, E10: whatever the two ends want,
// they come to the same connection, and its read depths hold.
func TestPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours := anyOffer(rapid.SampledFrom([]mpa.Dialect{0, mpa.DialectRFC5044, mpa.DialectRFC6581}).Draw(t,
			"dialect")).Draw(t, "initiator")
		theirs := anyAnswer().Draw(t, "responder")
		i, err := mpa.NewInitiator(ours)
		testrig.Must(t, err)
		r := mpa.NewResponder(mpa.ResponderConfig{})
		r.Start(epoch)
		if _, err := r.Input(epoch, i.Start(epoch)); err != nil {
			t.Fatal(err)
		}
		reply, err := r.Accept(epoch, theirs)
		testrig.Must(t, err)
		if n, err := i.Input(epoch, append(reply, 0)); err != nil || n != len(reply) {
			t.Fatal(n, err)
		}
		checkPair(t, i.Negotiated(), r.Negotiated())
		if !bytes.Equal(i.Negotiated().PrivateData, theirs.PrivateData) ||
			!bytes.Equal(r.Negotiated().PrivateData, ours.PrivateData) {
			t.Error("private data was changed")
		}
	})
}

func checkPair(t *rapid.T, i, r mpa.Negotiated) {
	t.Helper()
	// What holds for both ends, from either side.
	type shared struct {
		Dialect                  mpa.Dialect
		RevisionI, RevisionR     uint8
		ToInitiator, ToResponder bool
		CRC, Enhanced, P2P       bool
		Offered                  mpa.RTR
	}
	a := shared{i.Dialect, i.Revision, i.PeerRevision, i.MarkersReceive, i.MarkersSend, i.CRC, i.Enhanced,
		i.PeerToPeer, i.OfferedRTR}
	b := shared{r.Dialect, r.PeerRevision, r.Revision, r.MarkersSend, r.MarkersReceive, r.CRC, r.Enhanced,
		r.PeerToPeer, r.OfferedRTR}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if !i.Enhanced {
		return
	}
	// RFC 6581, section 9.1: "initiator ORD <= responder IRD", "responder ORD <=
	// initiator IRD", unless they are left to the ULP.
	if i.PeerIRD != mpa.NoNegotiation && i.ORD > r.IRD {
		t.Errorf("initiator ORD %d, responder IRD %d", i.ORD, r.IRD)
	}
	if i.PeerORD != mpa.NoNegotiation && i.TerminateCode != mpa.CodeInsufficientIRD && r.ORD > i.IRD {
		t.Errorf("responder ORD %d, initiator IRD %d", r.ORD, i.IRD)
	}
	// Our responder follows the initiator's IRD, so code 6 does not come up.
	if i.TerminateCode == mpa.CodeInsufficientIRD {
		t.Error("insufficient IRD between two of ours")
	}
	if i.PeerToPeer && (i.RTR == 0) != (i.TerminateCode == mpa.CodeNoMatchingRTR) || i.RTR&^r.RTR != 0 {
		t.Errorf("RTR %v of %v, code %d", i.RTR, r.RTR, i.TerminateCode)
	}
}

// Proves Q16: the codes have the RFC's numbers and names.
func TestNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"MPA/unknown (0x0)":                                mpa.Code(0),
		"MPA/TCP connection closed, terminated or lost":    mpa.Code(1),
		"MPA/CRC mismatch":                                 mpa.Code(2),
		"MPA/marker and ULPDU Length field mismatch":       mpa.Code(3),
		"MPA/invalid MPA Request Frame or MPA Reply Frame": mpa.Code(4),
		"MPA/local catastrophic":                           mpa.Code(5),
		"MPA/insufficient IRD resources":                   mpa.Code(6),
		"MPA/no matching RTR option":                       mpa.Code(7),
		"MPA/unknown (0x8)":                                mpa.Code(8),
		"Initiator":                                        mpa.RoleInitiator,
		"Responder":                                        mpa.RoleResponder,
		"role 0":                                           mpa.Role(0),
		"no dialect":                                       mpa.Dialect(0),
		"RFC 5044":                                         mpa.DialectRFC5044,
		"RFC 6581":                                         mpa.DialectRFC6581,
		"dialect 200":                                      mpa.Dialect(200),
		"send|write|read":                                  mpa.RTR(7),
		"failure 0":                                        mpa.Failure(0),
	} {
		if got.String() != want {
			t.Errorf("%q want %q", got, want)
		}
	}
	seen := map[string]bool{}
	for f := mpa.FailureTimeout; f <= mpa.FailureDialect; f++ {
		if seen[f.String()] || f.String() == fmt.Sprintf("failure %d", uint8(f)) {
			t.Errorf("failure %d: %q", uint8(f), f)
		}
		seen[f.String()] = true
	}
	if e := (&mpa.Error{Code: 1, Reason: "reset"}).Error(); e != "mpa: reset" {
		t.Errorf("%q", e)
	}
}
