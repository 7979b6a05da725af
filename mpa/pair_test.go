package mpa_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
)

func anyDepth() *rapid.Generator[uint16] {
	return rapid.OneOf(rapid.Uint16Range(0, 5), rapid.Uint16Range(0, 0x3ffe), rapid.Just[uint16](mpa.NoNegotiation))
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
			AllRTR:       rapid.Bool().Draw(t, "all RTR"),
			PrivateData:  rapid.SliceOfN(rapid.Byte(), 0, 508).Draw(t, "private data"),
		}
	})
}

// Proves Q04, F11, F14, E02, E03, E04, E06, E07, E08, E10: whatever the two ends want,
// they come to the same connection, and its read depths hold.
func TestPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours := anyOffer(rapid.SampledFrom([]mpa.Dialect{0, mpa.DialectRFC5044, mpa.DialectRFC6581}).Draw(t, "dialect")).Draw(t, "initiator")
		theirs := anyOffer(0).Draw(t, "responder")
		i, err := mpa.NewInitiator(ours)
		if err != nil {
			t.Fatal(err)
		}
		r := mpa.NewResponder(mpa.ResponderConfig{})
		r.Start(epoch)
		if _, err := r.Input(epoch, i.Start(epoch)); err != nil {
			t.Fatal(err)
		}
		reply, err := r.Accept(epoch, theirs)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := i.Input(epoch, append(reply, 0)); err != nil || n != len(reply) {
			t.Fatal(n, err)
		}
		checkPair(t, i.Negotiated(), r.Negotiated())
		if !bytes.Equal(i.Negotiated().PrivateData, theirs.PrivateData) || !bytes.Equal(r.Negotiated().PrivateData, ours.PrivateData) {
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
	a := shared{i.Dialect, i.Revision, i.PeerRevision, i.MarkersReceive, i.MarkersSend, i.CRC, i.Enhanced, i.PeerToPeer, i.OfferedRTR}
	b := shared{r.Dialect, r.PeerRevision, r.Revision, r.MarkersSend, r.MarkersReceive, r.CRC, r.Enhanced, r.PeerToPeer, r.OfferedRTR}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if !i.Enhanced {
		return
	}
	// RFC 6581, Section 9.1: "initiator ORD <= responder IRD", "responder ORD <=
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

// FuzzResponder gives any octets to a Responder, whole and in steps, and answers.
//
// Proves Q13, E14: any split gives the same result, no octet beyond the Request is taken,
// and every Request that is taken can be answered in a frame that an Initiator reads.
func FuzzResponder(f *testing.F) {
	for _, name := range vectors(f, "siw-re") {
		f.Add(vector(f, name), byte(1))
	}
	f.Add(append(frame(request(2, "ff ff ff ff")), make([]byte, 600)...), byte(100))
	f.Fuzz(func(t *testing.T, b []byte, step byte) {
		one, parts := mpa.NewResponder(mpa.ResponderConfig{}), mpa.NewResponder(mpa.ResponderConfig{})
		one.Start(epoch)
		parts.Start(epoch)
		sameInput(t, one, parts, b, int(step))
		q := one.Request()
		if q == nil {
			return
		}
		if got := frame(q.Frame.Fields()); !bytes.HasPrefix(b, got) {
			t.Errorf("Request % x of % x", got, b)
		}
		reply, err := one.Accept(epoch, mpa.Offer{IRD: 3, ORD: 4, MaxIRD: 9, PrivateData: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		if n := one.Negotiated(); n.Enhanced && n.IRD > 9 || n.ORD > 4 {
			t.Errorf("IRD %d, ORD %d", n.IRD, n.ORD)
		}
		readsReply(t, q, reply)
	})
}

func readsReply(t *testing.T, q *mpa.Request, reply []byte) {
	t.Helper()
	o := mpa.Offer{Dialect: mpa.DialectRFC5044}
	if q.Enhanced {
		o = mpa.Offer{ClientServer: !q.PeerToPeer}
	}
	i := clone(t, o)
	if n, err := i.Input(epoch, reply); n != len(reply) || err != nil || !i.Done() {
		t.Errorf("Reply % x: %d, %v", reply, n, err)
	}
}

// FuzzInitiator gives any octets to an Initiator, whole and in steps.
//
// Proves Q13: any split gives the same result, and no octet beyond the Reply is taken.
func FuzzInitiator(f *testing.F) {
	for _, name := range vectors(f, "siw-re") {
		f.Add(vector(f, name), byte(1), false)
		f.Add(vector(f, name), byte(7), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, step byte, plain bool) {
		o := mpa.Offer{IRD: 2, ORD: 2, MaxIRD: 4}
		if plain {
			o.Dialect = mpa.DialectRFC5044
		}
		one, parts := clone(t, o), clone(t, o)
		sameInput(t, one, parts, b, int(step))
		if diff := cmp.Diff(one.Rejected(), parts.Rejected()); diff != "" {
			t.Error(diff)
		}
		if n := one.Negotiated(); one.Done() && (n.IRD > 4 || n.ORD > 2) {
			t.Errorf("IRD %d, ORD %d", n.IRD, n.ORD)
		}
	})
}

// sameInput gives the octets to two machines, to the second one in steps, and
// compares what comes of it.
func sameInput(t *testing.T, one, parts machine, b []byte, step int) {
	t.Helper()
	n, err := one.Input(epoch, b)
	taken, partsErr := 0, error(nil)
	for rest := b; len(rest) > 0 && partsErr == nil; {
		var k int
		k, partsErr = parts.Input(epoch, rest[:min(max(step, 1), len(rest))])
		if k == 0 {
			break
		}
		taken, rest = taken+k, rest[k:]
	}
	if n != taken || errText(err) != errText(partsErr) {
		t.Errorf("whole: %d, %v; in steps: %d, %v", n, err, taken, partsErr)
	}
	if n > mpa.StartupHeaderLen+mpa.MaxPrivateData {
		t.Errorf("took %d octets", n)
	}
	var e *mpa.StartupError
	if err != nil && (!errors.As(err, &e) || e.Err.Hint == "" || e.Err.Code != mpa.CodeStartupFrame) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(one.Negotiated(), parts.Negotiated()); diff != "" {
		t.Error(diff)
	}
}

// Proves Q16: the codes have the RFC's numbers and names.
func TestNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"TCP connection closed, terminated, or lost": mpa.Code(1),
		"MPA CRC mismatch":                           mpa.Code(2),
		"MPA Marker and ULPDU Length mismatch":       mpa.Code(3),
		"invalid MPA Request or Reply Frame":         mpa.Code(4),
		"local catastrophic":                         mpa.Code(5),
		"insufficient IRD resources":                 mpa.Code(6),
		"no matching RTR option":                     mpa.Code(7),
		"MPA error code 8":                           mpa.Code(8),
		"Initiator":                                  mpa.RoleInitiator,
		"Responder":                                  mpa.RoleResponder,
		"role 0":                                     mpa.Role(0),
		"no dialect":                                 mpa.Dialect(0),
		"RFC 5044":                                   mpa.DialectRFC5044,
		"RFC 6581":                                   mpa.DialectRFC6581,
		"dialect 200":                                mpa.Dialect(200),
		"send|write|read":                            mpa.RTR(7),
		"failure 0":                                  mpa.Failure(0),
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
