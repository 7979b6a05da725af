package mpa_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/mpa"
)

// Proves Q05, Q10, Q13, E03, E05: a rejection leaves MPA with the peer's private data, IRD
// and ORD, and what is after it to the ULP.
func TestInitiatorRejected(t *testing.T) {
	for _, c := range []struct {
		name  string
		offer mpa.Offer
		reply mpa.StartupFields
		want  mpa.RejectError
	}{
		{
			"plain", mpa.Offer{Dialect: mpa.DialectRFC5044}, withR(reply(1, "6e 6f")),
			mpa.RejectError{Dialect: mpa.DialectRFC5044, Revision: 1, PrivateData: []byte("no")},
		},
		{
			"enhanced", mpa.Offer{IRD: 1}, withR(reply(2, "00 02 00 09 6e 6f")),
			mpa.RejectError{Dialect: mpa.DialectRFC6581, Revision: 2, PrivateData: []byte("no"),
				Enhanced: true, PeerIRD: 2, PeerORD: 9},
		},
		{
			"unenhanced to enhanced", mpa.Offer{}, withR(reply(1, "6e 6f")),
			mpa.RejectError{Dialect: mpa.DialectRFC5044, Revision: 1, PrivateData: []byte("no"), Fallback: true},
		},
		{
			"enhanced to unenhanced", mpa.Offer{Dialect: mpa.DialectRFC5044}, withR(reply(2, "00 02 00 09 6e 6f")),
			mpa.RejectError{Dialect: mpa.DialectRFC6581, Revision: 2, PrivateData: []byte("no"),
				Enhanced: true, PeerIRD: 2, PeerORD: 9},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := clone(t, c.offer)
			d := &dialogue{T: t, m: i, twin: clone(t, c.offer), now: epoch}
			d.input(append(frame(c.reply), "ULP's own"...), 9)
			d.wantOK()
			if !i.Done() || !i.Deadline().IsZero() {
				t.Errorf("done %v, deadline %v", i.Done(), i.Deadline())
			}
			if diff := cmp.Diff(&c.want, i.Rejected(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if n, err := i.Input(d.now, []byte("ULP's own")); n != 0 || err != nil {
				t.Errorf("took %d bytes of the ULP's, %v", n, err)
			}
		})
	}
	e := &mpa.RejectError{Revision: 2, Enhanced: true, PeerORD: 9, PeerIRD: mpa.NoNegotiation, Fallback: true}
	if want := "mpa: the responder rejected the connection (R=1, revision 2, 0 bytes of private data, IRD not negotiated, ORD 9); retry with revision 1"; e.Error() != want {
		t.Errorf("%v", e)
	}
}

// Proves Q08, Q10: the error shows what the responder's consumer has to say, within
// bounds.
func TestRejectErrorPrivateData(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 65)
	for data, want := range map[string]string{
		"":                "(R=1, revision 1, 0 bytes of private data)",
		"not today\n":     `(R=1, revision 1, 10 bytes of private data "not today\n")`,
		string(long[:64]): `64 bytes of private data "` + string(long[:64]) + `")`,
		string(long):      `65 bytes of private data "` + string(long) + `")`,

		string(long[:64]) + "\x00": `65 bytes of private data "` + string(long[:64]) + `" ...)`,
	} {
		e := &mpa.RejectError{Revision: 1, PrivateData: []byte(data)}
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%v, want %s", e, want)
		}
	}
}

// Proves Q04: what a rejection without a reason may be about, when the Request
// asked for markers, or for CRCs and the rejection does not. Linux's siw answers so.
func TestInitiatorRejectedMarkers(t *testing.T) {
	const markers, crc = "asked for markers (M=1)", "asked for CRCs (C=1)"
	for _, c := range []struct {
		offer mpa.Offer
		crc   bool // of the Reply
		reply string
		hint  string
	}{
		{mpa.Offer{Markers: true}, true, "00 00 00 00", markers},
		{mpa.Offer{Markers: true, NoCRC: true}, false, "00 00 00 00", markers},
		{mpa.Offer{Markers: true}, true, "00 00 00 00 6e 6f", ""},
		{mpa.Offer{}, false, "00 00 00 00", crc},
		{mpa.Offer{}, false, "00 00 00 00 6e 6f", ""},
		{mpa.Offer{}, true, "00 00 00 00", ""},
		{mpa.Offer{NoCRC: true}, false, "00 00 00 00", ""},
	} {
		i := clone(t, c.offer)
		answer := withR(reply(2, c.reply))
		answer.C = c.crc
		if _, err := i.Input(epoch, frame(answer)); err != nil || i.Rejected() == nil {
			t.Fatalf("%v, %v", i.Rejected(), err)
		}
		got := i.Rejected().Error()
		if (c.hint == markers) != strings.Contains(got, markers) || (c.hint == crc) != strings.Contains(got, crc) {
			t.Errorf("asked %+v, private data %s: got %q, want a hint with %q", c.offer, c.reply, got, c.hint)
		}
	}
	i := clone(t, mpa.Offer{Dialect: mpa.DialectRevision0})
	if _, err := i.Input(epoch, frame(withR(reply(0, "")))); err != nil ||
		!strings.Contains(i.Rejected().Error(), "RDMAC RNICs always use markers") {
		t.Errorf("revision 0: %v, %v", i.Rejected(), err)
	}
}

// Proves Q05, Q10: R=1 is a rejection in any revision, known or not.
// Proves Q07: TCP does not stay open after one that is not served.
func TestRejectAnyRevision(t *testing.T) {
	for _, o := range []mpa.Offer{
		{}, {Dialect: mpa.DialectRFC5044}, {Dialect: mpa.DialectRtr}, {Kind: rdmac}, {Kind: nonperm},
		{Kind: nonperm, Dialect: mpa.DialectRFC5044},
	} {
		for _, rev := range []uint8{0, 1, 2, 3, 255} {
			i := clone(t, o)
			d := &dialogue{T: t, m: i, twin: clone(t, o), now: epoch}
			f := mpa.StartupFields{Key: mpa.KeyReply, R: true, Rev: rev, PrivateData: []byte("no")}
			d.input(append(frame(f), "ULP"...), 3)
			d.wantOK()
			served := rev == 1 || rev == 2
			switch {
			case o.Kind == rdmac:
				served = rev == 0
			case o.Kind != nonperm:
				served = served || rev == 0
			}
			if e := i.Rejected(); e != nil && (e.Closed == served ||
				strings.Contains(e.Error(), "is closed") == served) {
				t.Errorf("%+v, revision %d: %v", o, rev, e)
			}
			if e := i.Rejected(); e == nil || e.Revision != rev || string(e.PrivateData) != "no" ||
				e.Fallback != (i.Dialect() == mpa.DialectRFC6581) {
				t.Errorf("%v, revision %d: %+v", i.Dialect(), rev, e)
			}
		}
	}
}
