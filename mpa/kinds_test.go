package mpa_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

const (
	rdmac   = mpa.KindRDMAC
	nonperm = mpa.KindNonPermissive
	perm    = mpa.KindPermissive
)

// cell is one cell of the figures of draft-carrier-rddp-rnic-interop-00: an
// Initiator and a Responder with the M of their frames, and what comes of them: the
// DDP/RDMAP version and the markers in the receive direction of Initiator and
// Responder, "close", or nothing where there is no such case.
type cell struct {
	figure     int
	initiator  mpa.Kind
	initiatorM bool
	responder  mpa.Kind
	responderM bool
	want       string
}

// carrierCells are figures 2, 3 and 4. What figure 3 marks as N/A is what a
// permissive Responder that would have no markers makes of an RDMAC Initiator: it
// answers M=1.
var carrierCells = []cell{
	{2, rdmac, true, rdmac, true, "V=0 M=1/1"},
	{2, rdmac, true, nonperm, false, "close"},
	{2, rdmac, true, nonperm, true, "close"},
	{2, nonperm, false, rdmac, true, "close"},
	{2, nonperm, false, nonperm, false, "V=1 M=0/0"},
	{2, nonperm, false, nonperm, true, "V=1 M=0/1"},
	{2, nonperm, true, rdmac, true, "close"},
	{2, nonperm, true, nonperm, false, "V=1 M=1/0"},
	{2, nonperm, true, nonperm, true, "V=1 M=1/1"},

	{3, rdmac, true, rdmac, true, "V=0 M=1/1"},
	{3, rdmac, true, perm, false, "V=0 M=1/1"}, // N/A
	{3, rdmac, true, perm, true, "V=0 M=1/1"},
	{3, perm, false, rdmac, true, "V=0 M=1/1"},
	{3, perm, false, perm, false, "V=1 M=0/0"},
	{3, perm, false, perm, true, "V=1 M=0/1"},
	{3, perm, true, rdmac, true, "V=0 M=1/1"},
	{3, perm, true, perm, false, "V=1 M=1/0"},
	{3, perm, true, perm, true, "V=1 M=1/1"},

	{4, nonperm, false, nonperm, false, "V=1 M=0/0"},
	{4, nonperm, false, nonperm, true, "V=1 M=0/1"},
	{4, nonperm, false, perm, false, "V=1 M=0/0"},
	{4, nonperm, false, perm, true, "V=1 M=0/1"},
	{4, nonperm, true, nonperm, false, "V=1 M=1/0"},
	{4, nonperm, true, nonperm, true, "V=1 M=1/1"},
	{4, nonperm, true, perm, false, "V=1 M=1/0"},
	{4, nonperm, true, perm, true, "V=1 M=1/1"},
	{4, perm, false, nonperm, false, "V=1 M=0/0"},
	{4, perm, false, nonperm, true, "V=1 M=0/1"},
	{4, perm, false, perm, false, "V=1 M=0/0"},
	{4, perm, false, perm, true, "V=1 M=0/1"},
	{4, perm, true, nonperm, false, "V=1 M=1/0"},
	{4, perm, true, nonperm, true, "V=1 M=1/1"},
	{4, perm, true, perm, false, "V=1 M=1/0"},
	{4, perm, true, perm, true, "V=1 M=1/1"},
}

func (c *cell) String() string {
	m := map[bool]string{false: "M=0", true: "M=1"}
	return fmt.Sprintf("figure %d: %v %s to %v %s", c.figure, c.initiator, m[c.initiatorM], c.responder, m[c.responderM])
}

// run brings the two ends of a cell up, with no CRC wanted by anybody who can do without.
func (c *cell) run(t *testing.T) *virtual {
	t.Helper()
	o := mpa.Offer{Kind: c.initiator, Markers: c.initiatorM, NoCRC: true}
	if c.initiator != rdmac {
		o.Dialect = mpa.DialectRFC5044 // the draft knows revisions 0 and 1
	}
	i, err := mpa.NewInitiator(o)
	testrig.Must(t, err)
	r := mpa.NewResponder(mpa.ResponderConfig{Kind: c.responder, Markers: c.responderM, NoCRC: true})
	v := newVirtual(i, r, mpa.Answer{Markers: c.responderM, NoCRC: true}, accepts)
	v.runWhole()
	if v.wrong != nil {
		t.Error(v.wrong)
	}
	return v
}

// Proves N01, N02, N03, N04, N05, N06, Q07, Q11: every cell of the figures comes up with the
// same version at both ends
// and in DDP and RDMAP, with the markers that it says, or fails at both ends with an error that names
// the revisions.
func TestCarrierFigures(t *testing.T) {
	for _, c := range carrierCells {
		t.Run(c.String(), func(t *testing.T) {
			v := c.run(t)
			if c.want == "close" {
				wantRevisions(t, v, &c)
				return
			}
			if !v.i.up(fpduOfResponder) || !v.r.up(fpduOfInitiator) {
				t.Fatalf("not up: %v, %v", v.i.err, v.r.err)
			}
			a, b := v.i.m.Negotiated(), v.r.m.Negotiated()
			for _, n := range []mpa.Negotiated{a, b} {
				if n.DDPVersion != n.RDMAPVersion || n.CRC != (n.DDPVersion == 0) {
					t.Errorf("%+v", n)
				}
			}
			bit := map[bool]int{true: 1}
			got := fmt.Sprintf("V=%d M=%d/%d", a.DDPVersion, bit[a.MarkersReceive], bit[b.MarkersReceive])
			if got != c.want || a.DDPVersion != b.DDPVersion || a.MarkersSend != b.MarkersReceive || a.MarkersReceive != b.MarkersSend {
				t.Errorf("got %s want %s: %+v, %+v", got, c.want, a, b)
			}
		})
	}
}

// wantRevisions expects a failure at both ends that names the revisions.
func wantRevisions(t *testing.T, v *virtual, c *cell) {
	t.Helper()
	texts := [2]string{
		"Reply of revision 0 to our Request of revision 1; the responder is an RDMAC RNIC",
		"its Request was of revision 1 and our Reply of revision 0",
	}
	if c.initiator == rdmac {
		texts = [2]string{
			"Reply of revision 1 to our Request of revision 0; the responder is a non-permissive IETF RNIC",
			"Request of revision 0, and this RNIC is a non-permissive one of revisions 1 and 2",
		}
	}
	for n, e := range []*end{v.i, v.r} {
		var s *mpa.StartupError
		if !errors.As(e.err, &s) || !strings.Contains(e.err.Error(), texts[n]) {
			t.Errorf("got %v\nwant %s", e.err, texts[n])
		}
	}
}

// Frames of revision 0, and what a non-permissive RNIC answers.
const (
	revision0Request = reqKey + `
		c0     # 10 M=1 C=1 R=0 S=0
		00     # 11 Rev 0
		00 02  # 12 PD_Length
		68 69  # 14 "hi"`
	revision0Reply = repKey + `
		c0     # 10 M=1 C=1 R=0 S=0
		00     # 11 Rev 0
		00 02  # 12 PD_Length
		79 6f  # 14 "yo"`
	farewellReply = repKey + `
		40     # 10 M=0 C=1 R=0 S=0
		01     # 11 Rev 1
		00 00  # 12 PD_Length 0`
)

// Proves N01, N02, N05, N06, Q01: an RDMAC Initiator asks with revision 0, M=1 and C=1,
// whatever its offer says.
func TestRevision0Initiator(t *testing.T) {
	for _, o := range []mpa.Offer{{Kind: rdmac}, {Kind: rdmac, Dialect: mpa.DialectRevision0, NoCRC: true}, {Dialect: mpa.DialectRevision0, NoCRC: true}} {
		o.PrivateData, o.IRD, o.ORD = []byte("hi"), 3, 4
		d, _ := starting(t, o, unhex(t, revision0Request))
		d.input(append(unhex(t, revision0Reply), "FPDU"...), 4)
		d.output(nil)
		d.wantNegotiated(mpa.Negotiated{
			Role: mpa.RoleInitiator, Dialect: mpa.DialectRevision0, MarkersReceive: true, MarkersSend: true, CRC: true,
			IRD: 3, ORD: 4, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, PrivateData: []byte("yo"), SendFirst: true,
		})
	}
}

// Proves N05, N06, Q11, Q13: a permissive Responder answers revision 0 with M=1 and C=1, as
// does an RDMAC one.
func TestRevision0Responder(t *testing.T) {
	for _, cfg := range []mpa.ResponderConfig{{}, {Kind: perm}, {Kind: rdmac}} {
		d, r := responder(t, cfg)
		d.input(append(unhex(t, revision0Request), "FPDU"...), 4)
		want := &mpa.Request{
			Dialect: mpa.DialectRevision0, Markers: true, CRC: true, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation,
			PrivateData: []byte("hi"), Frame: unhex(t, revision0Request),
		}
		if diff := cmp.Diff(want, r.Request()); diff != "" {
			t.Error(diff)
		}
		d.wantAnswer(mpa.Answer{NoCRC: true, PrivateData: []byte("yo")}, unhex(t, revision0Reply))
		d.output(nil)
		d.wantNegotiated(mpa.Negotiated{
			Role: mpa.RoleResponder, Dialect: mpa.DialectRevision0, MarkersReceive: true, MarkersSend: true, CRC: true,
			PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, PrivateData: []byte("hi"),
		})
	}
}

// Proves N05, N06: a permissive Initiator's revision 1 that is answered with revision 0 comes
// up so.
func TestRevision0ToRevision1(t *testing.T) {
	d, i := starting(t, mpa.Offer{Dialect: mpa.DialectRFC5044, NoCRC: true}, frame(request(1, "")))
	d.input(unhex(t, revision0Reply), 0)
	n := i.Negotiated()
	if n.Dialect != mpa.DialectRevision0 || n.Revision != 1 || n.PeerRevision != 0 || n.DDPVersion+n.RDMAPVersion != 0 ||
		!n.MarkersReceive || !n.MarkersSend || !n.CRC {
		t.Errorf("%+v", n)
	}
	// The Rtr frame is no business of an RDMAC RNIC.
	d, i = initiator(t, mpa.Offer{Dialect: mpa.DialectRtr}, mpa.StartupFields{Key: mpa.KeyRequest, C: true, S: true, Rev: 1})
	d.input(unhex(t, revision0Reply), 0)
	d.output(nil)
	if i.Negotiated().Dialect != mpa.DialectRevision0 {
		t.Errorf("%+v", i.Negotiated())
	}
}

// Proves N04, Q07: a non-permissive Responder's last word on revision 0, when the Request is whole.
func TestFarewell(t *testing.T) {
	for _, c := range []struct {
		name, text string
		cfg        mpa.ResponderConfig
	}{
		{"non-permissive", "make this RNIC permissive", mpa.ResponderConfig{Kind: nonperm}},
		{"switched off", "revision 0 is not served with S=0; served are revision 1 (and 2 with S=0)", mpa.ResponderConfig{Dialects: []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := responder(t, c.cfg)
			whole := unhex(t, revision0Request)
			d.input(whole[:len(whole)-1], 0)
			d.wantOK()
			d.output(nil)
			d.input(append(whole[len(whole)-1:], "FPDU"...), 4)
			d.wantError(mpa.FailureRevision, mpa.CodeStartupFrame, c.text)
			d.output(unhex(t, farewellReply))
		})
	}
	// M and C are the RNIC's own.
	d, _ := responder(t, mpa.ResponderConfig{Kind: nonperm, Markers: true, NoCRC: true})
	d.input(unhex(t, revision0Request), 0)
	want := unhex(t, farewellReply)
	want[16] = 0x80
	d.output(want)
	// To a Request that is none, or that an RDMAC RNIC does not serve, there is nothing to say.
	d, _ = responder(t, mpa.ResponderConfig{Kind: nonperm})
	d.input(frame(mpa.StartupFields{Key: mpa.KeyRequest, PDLength: 513}), 0)
	d.wantError(mpa.FailureRevision, mpa.CodeStartupFrame, "revision 0")
	d.output(nil)
	d, _ = responder(t, mpa.ResponderConfig{Kind: rdmac, Dialects: []mpa.Dialect{mpa.DialectStartKey}})
	d.input(unhex(t, revision0Request), 0)
	d.wantError(mpa.FailureRevision, mpa.CodeStartupFrame, "no Request Frames are: the peer must use Start Keys")
	d.output(nil)
}

// Proves N03, E13: revision 2 to an RDMAC RNIC fails, and says how it would come up.
func TestRevision2ToRDMAC(t *testing.T) {
	d, _ := initiator(t, mpa.Offer{NoCRC: true}, request(2, "c0 00 c0 00"))
	d.input(unhex(t, revision0Reply), 0)
	if e := d.wantError(mpa.FailureMismatch, mpa.CodeStartupFrame, "unenhanced Reply, revision 0, to an enhanced Request of revision 2; the responder is an RDMAC RNIC; retry with revision 1"); !e.Fallback {
		t.Error("no Fallback")
	}
	d, _ = initiator(t, mpa.Offer{Kind: nonperm, NoCRC: true}, request(2, "c0 00 c0 00"))
	d.input(unhex(t, revision0Reply), 0)
	if e := d.wantError(mpa.FailureRevision, mpa.CodeStartupFrame, "Reply of revision 0 to our Request of revision 2"); e.Fallback {
		t.Error("Fallback")
	}
	d, r := responder(t, mpa.ResponderConfig{Kind: rdmac})
	d.input(frame(request(2, "80 00 c0 00")), 0)
	if q := r.Request(); q.Enhanced || q.Revision != 2 || !bytes.Equal(q.PrivateData, unhex(t, "80 00 c0 00")) {
		t.Errorf("an RDMAC RNIC's consumer gets %+v", q)
	}
	d.wantReply(mpa.Answer{}, withM(withC(reply(0, ""))))
	d.closed()
	if !strings.Contains(d.err.Error(), "its Request was of revision 2 and our Reply of revision 0: a permissive IETF RNIC may try again with revision 1") {
		t.Error(d.err)
	}
}

// Proves N01, N03, N05: the consumer narrows the kind for one connection.
func TestOfferKind(t *testing.T) {
	for _, c := range []struct {
		name         string
		cfg, offer   mpa.Kind
		request      mpa.StartupFields
		reply        mpa.StartupFields
		bad          string
		wantMarkersI bool
	}{
		{"permissive as RDMAC", perm, rdmac, request(1, ""), withM(withC(reply(0, ""))), "", true},
		{"permissive as RDMAC, enhanced", 0, rdmac, request(2, "80 00 c0 00"), withM(withC(reply(0, ""))), "", true},
		{"permissive as non-permissive", perm, nonperm, request(1, ""), reply(1, ""), "", false},
		{"permissive as non-permissive, revision 0", perm, nonperm, request(0, ""), mpa.StartupFields{}, "not of an RNIC of kind non-permissive", false},
		{"non-permissive as RDMAC", nonperm, rdmac, request(1, ""), mpa.StartupFields{}, "not of an RNIC of kind rdmac", false},
		{"non-permissive as permissive", nonperm, perm, request(1, ""), reply(1, ""), "", false},
		{"RDMAC as permissive", rdmac, perm, request(1, ""), withM(withC(reply(0, ""))), "", true},
		{"no kind", perm, 9, request(1, ""), mpa.StartupFields{}, "kind 9", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, r := responder(t, mpa.ResponderConfig{Kind: c.cfg})
			d.input(frame(c.request), 0)
			o := mpa.Answer{Kind: c.offer, NoCRC: true}
			if c.bad == "" {
				d.wantReply(o, c.reply)
				if n := r.Negotiated(); n.MarkersSend != c.wantMarkersI || n.MarkersReceive != c.wantMarkersI {
					t.Errorf("%+v", n)
				}
				return
			}
			if _, err := r.Accept(epoch, o); !errors.Is(err, mpa.ErrOffer) || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%v", err)
			}
			f := withR(c.request)
			f.Key, f.S, f.PrivateData = mpa.KeyReply, false, []byte("no")
			if f.Rev == 0 {
				f = withM(withC(f)) // in a rejection, too
			}
			d.wantReject("no", frame(f))
		})
	}
}

// Proves N01: kinds and the dialects that they do not have.
func TestKindDialects(t *testing.T) {
	versions := map[mpa.Dialect]uint8{mpa.DialectRFC5044: 1, mpa.DialectRFC6581: 1, mpa.DialectRtr: 1}
	for kind, has := range map[mpa.Kind][2]bool{0: {true, true}, perm: {true, true}, nonperm: {false, true}, rdmac: {true, false}, 9: {}} {
		for _, version := range []uint8{0, 1, 2} {
			if got := kind.Version(version); got != (version < 2 && has[version%2]) {
				t.Errorf("%v version %d: %v", kind, version, got)
			}
		}
		for _, d := range mpa.Dialects() {
			i, err := mpa.NewInitiator(mpa.Offer{Kind: kind, Dialect: d})
			if (err == nil) != has[versions[d]] || err != nil && !errors.Is(err, mpa.ErrOffer) {
				t.Errorf("%v, %v: %v", kind, d, err)
			}
			if err == nil && i.Dialect() != d {
				t.Errorf("%v became %v", d, i.Dialect())
			}
		}
	}
	i, _ := mpa.NewInitiator(mpa.Offer{Kind: rdmac})
	if i.Dialect() != mpa.DialectRevision0 {
		t.Errorf("%v", i.Dialect())
	}
}

// Proves N01: names, as text and back.
func TestKindText(t *testing.T) {
	for want, k := range map[string]mpa.Kind{"default": 0, "permissive": perm, "non-permissive": nonperm, "rdmac": rdmac} {
		b, err := k.MarshalText()
		var back mpa.Kind
		if err != nil || string(b) != want || back.UnmarshalText(bytes.ToUpper(b)) != nil || back != k {
			t.Errorf("%v: %q, %v, %v", k, b, err, back)
		}
	}
	var k mpa.Kind
	if err := k.UnmarshalText([]byte("iwarp")); err == nil || !strings.Contains(err.Error(), "permissive, non-permissive, rdmac") {
		t.Error(err)
	}
	for want, d := range map[string]mpa.Dialect{
		"rfc5044": mpa.DialectRFC5044, "rfc6581": mpa.DialectRFC6581, "rtr2007": mpa.DialectRtr,
		"revision0": mpa.DialectRevision0, "startkey": mpa.DialectStartKey,
	} {
		b, err := d.MarshalText()
		var back mpa.Dialect
		if err != nil || string(b) != want || back.UnmarshalText(bytes.ToUpper(b)) != nil || back != d {
			t.Errorf("%v: %q, %v, %v", d, b, err, back)
		}
	}
	var d mpa.Dialect
	if err := d.UnmarshalText([]byte("none")); err == nil || !strings.Contains(err.Error(), "rfc5044, rfc6581, rtr2007, revision0, startkey") {
		t.Error(err)
	}
	if k, d := mpa.Kind(4), mpa.Dialect(6); k.String() != "kind 4" || d.String() != "dialect 6" {
		t.Error(k, d)
	}
	for _, o := range []mpa.Offer{{Kind: 4}, {Dialect: 6}} {
		if _, err := mpa.NewInitiator(o); !errors.Is(err, mpa.ErrOffer) || !strings.Contains(err.Error(), "there is no ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := mpa.OfRevision(3); !errors.Is(err, mpa.ErrOffer) {
		t.Error(err)
	}
	if diff := cmp.Diff([]mpa.Dialect{1, 2, 3, 4, 5}, mpa.Dialects(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}
