package mpa_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/mpa"
)

// Proves Q01, Q09, Q11, Q13, E01, E04, E08: a peer-to-peer startup with siw.
func TestResponderEnhanced(t *testing.T) {
	d, r := responder(t)
	d.wantDeadline(5 * time.Second)
	if r.Request() != nil {
		t.Error("a Request before there is one")
	}
	d.input(append(vector(t, "siw-request-p2p"), "what follows"...), 12)
	d.wantOK()
	d.wantDeadline(0)
	want := &mpa.Request{
		Dialect: mpa.DialectRFC6581, Revision: 2, Enhanced: true, IRD: 1, ORD: 1,
		PeerToPeer: true, RTR: mpa.RTRWrite | mpa.RTRRead, Frame: vector(t, "siw-request-p2p"),
	}
	if diff := cmp.Diff(want, r.Request(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if r.Done() {
		t.Error("done before it was answered")
	}
	d.wantReply(mpa.Answer{NoCRC: true, IRD: 16, ORD: 16, PrivateData: []byte("hi")}, reply(2, "80 10 c0 01 68 69"))
	d.wantNegotiated(mpa.Negotiated{
		Role: mpa.RoleResponder, Dialect: mpa.DialectRFC6581, Revision: 2, PeerRevision: 2,
		DDPVersion: 1, RDMAPVersion: 1,
		Enhanced: true, IRD: 16, ORD: 1, PeerIRD: 1, PeerORD: 1,
		PeerToPeer: true, RTR: mpa.RTRWrite | mpa.RTRRead, OfferedRTR: mpa.RTRWrite | mpa.RTRRead,
		AnsweredRTR: mpa.RTRWrite | mpa.RTRRead,
	})
	if n, err := r.Input(d.now, []byte("what follows")); n != 0 || err != nil {
		t.Errorf("took %d bytes of what follows, %v", n, err)
	}
}

// Proves E02, Q05, Q06, Q07, F14: which dialect and revision a Request is answered in.
func TestResponderDialects(t *testing.T) {
	for _, c := range []struct {
		name    string
		request mpa.StartupFields
		reply   mpa.StartupFields
		dialect mpa.Dialect
	}{
		{"revision 1", request(1, ""), reply(1, ""), mpa.DialectRFC5044},
		{"revision 1 with S and other reserved bits", bits(request(1, ""), true, 0xf),
			reply(1, ""), mpa.DialectRFC5044},
		{"revision 1 with R", withR(request(1, "")), reply(1, ""), mpa.DialectRFC5044},
		{"revision 2 without S", bits(request(2, ""), false, 0), bits(reply(2, ""), false, 0), mpa.DialectRFC5044},
		{"revision 2", request(2, "00 00 00 00"), reply(2, "00 00 00 00"), mpa.DialectRFC6581},
		{"revision 2, reserved bits and R", withR(bits(request(2, "00 00 00 00"), true, 0xf)),
			reply(2, "00 00 00 00"), mpa.DialectRFC6581},
		{"revision 3 with S", request(3, "00 00 00 00"), reply(2, "00 00 00 00"), mpa.DialectRFC6581},
		{"revision 255 with S", request(255, "00 00 00 00"), reply(2, "00 00 00 00"), mpa.DialectRFC6581},
		{"C", withC(request(1, "")), withC(reply(1, "")), mpa.DialectRFC5044},
		{"M is the initiator's", withM(request(1, "")), reply(1, ""), mpa.DialectRFC5044},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, r := responder(t)
			d.input(frame(c.request), 0)
			d.wantReply(mpa.Answer{NoCRC: true}, c.reply)
			n := r.Negotiated()
			if n.Dialect != c.dialect || n.PeerRevision != c.request.Rev || n.Revision != c.reply.Rev ||
				n.Enhanced != c.reply.S || n.SendFirst || n.MarkersSend != c.request.M || n.CRC != c.request.C {
				t.Errorf("%+v", n)
			}
		})
	}
}

func bits(f mpa.StartupFields, s bool, res uint8) mpa.StartupFields {
	f.S, f.Res = s, res
	return f
}

// Proves F13, F14, Q04: C of the Reply says whether there will be CRCs.
func TestResponderMarkersAndCRC(t *testing.T) {
	for _, c := range []struct{ noCRC, peerC, crc bool }{
		{false, false, true}, {false, true, true}, {true, true, true}, {true, false, false},
	} {
		d, r := responder(t)
		f := request(1, "")
		f.C = c.peerC
		d.input(frame(f), 0)
		want := withM(reply(1, ""))
		want.C = c.crc
		d.wantReply(mpa.Answer{Markers: true, NoCRC: c.noCRC}, want)
		if n := r.Negotiated(); n.CRC != c.crc || !n.MarkersReceive || n.MarkersSend {
			t.Errorf("%+v: %+v", c, n)
		}
	}
}

// Proves E03, E04, E06, E14: IRD and ORD of the Reply.
func TestResponderDepths(t *testing.T) {
	const none = mpa.NoNegotiation
	for _, c := range []struct {
		name             string
		peerIRD, peerORD mpa.Depth
		ird, ord, most   mpa.Depth
		wantIRD, wantORD mpa.Depth // in effect
		sentIRD, sentORD mpa.Depth
	}{
		{"enough of both", 8, 8, 8, 8, 0, 8, 8, 8, 8},
		{"ORD is lowered", 2, 8, 8, 8, 0, 8, 2, 8, 2},
		{"ORD is lowered to nothing", 0, 8, 8, 8, 0, 8, 0, 8, 0},
		{"IRD is not raised", 8, 16, 8, 8, 0, 8, 8, 8, 8},
		{"IRD is raised", 8, 16, 8, 8, 99, 16, 8, 16, 8},
		{"IRD is raised up to the bound", 8, 0x3ffe, 8, 8, 99, 99, 8, 99, 8},
		{"IRD is not lowered", 8, 1, 8, 8, 99, 8, 8, 8, 8},
		{"the initiator's ORD is left to the ULP", 8, none, 8, 8, 0, 8, 8, none, 8},
		{"the initiator's IRD is left to the ULP", none, 8, 8, 8, 0, 8, 8, 8, none},
		{"both are", none, none, 8, 9, 99, 8, 9, none, none},
		{"ours are", 8, 8, none, none, 0, none, none, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, r := responder(t)
			e := mpa.Enhanced{IRD: c.peerIRD, ORD: c.peerORD}
			q := request(2, "")
			q.PrivateData = mpa.AppendEnhanced(nil, &e)
			d.input(frame(q), 0)
			want := mpa.Enhanced{IRD: c.sentIRD, ORD: c.sentORD}
			d.wantReply(mpa.Answer{NoCRC: true, IRD: c.ird, ORD: c.ord, MaxIRD: c.most}, enhancedReply(want))
			n := r.Negotiated()
			if n.IRD != c.wantIRD || n.ORD != c.wantORD || n.PeerIRD != c.peerIRD || n.PeerORD != c.peerORD {
				t.Errorf("IRD %d ORD %d, peer's %d %d", n.IRD, n.ORD, n.PeerIRD, n.PeerORD)
			}
		})
	}
}

// Proves E04, E07, E08, E15: A and the RTR indications of the Reply.
func TestResponderRTR(t *testing.T) {
	const write, read, send = mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend
	for _, c := range []struct {
		name     string
		request  string
		offer    mpa.Answer
		reply    string
		answered mpa.RTR
	}{
		{"write and read", "80 00 c0 00", mpa.Answer{}, "80 01 c0 00", write | read},
		{"write", "80 00 80 00", mpa.Answer{}, "80 00 80 00", write},
		{"read, IRD raised to 1", "80 00 40 00", mpa.Answer{}, "80 01 40 00", read},
		{"read, IRD left to the ULP", "80 00 7f ff", mpa.Answer{}, "bf ff 40 00", read},
		{"send", "c0 00 00 00", mpa.Answer{}, "c0 00 00 00", send},
		{"send and write", "c0 00 80 00", mpa.Answer{}, "c0 00 80 00", send | write},
		{"none: all that we support", "80 00 00 00", mpa.Answer{}, "c0 01 c0 00", send | write | read},
		{"no match: all that we support", "c0 00 00 00", mpa.Answer{RTR: write}, "80 00 80 00", write},
		{"all that we support", "80 00 80 00", mpa.Answer{AllRTR: true}, "c0 01 c0 00", send | write | read},
		{"all three", "c0 00 c0 00", mpa.Answer{}, "c0 01 c0 00", send | write | read},
		{"a choice of ours", "c0 00 c0 00", mpa.Answer{RTR: send | read}, "c0 01 40 00", send | read},
		{"client-server", "00 00 00 00", mpa.Answer{}, "00 00 00 00", 0},
		{"client-server, B C D to be ignored", "40 00 c0 00", mpa.Answer{}, "00 00 00 00", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, r := responder(t)
			d.input(frame(request(2, c.request)), 0)
			c.offer.NoCRC = true
			d.wantReply(c.offer, reply(2, c.reply))
			n := r.Negotiated()
			if n.RTR != c.answered || n.PeerToPeer != (c.answered != 0) ||
				n.OfferedRTR != r.Request().RTR || n.SendFirst {
				t.Errorf("%+v", n)
			}
		})
	}
}

// Proves Q10, E03, E05, E06: a rejection in the Request's dialect, with the ORD that we
// need.
func TestResponderReject(t *testing.T) {
	for _, c := range []struct {
		name    string
		request mpa.StartupFields
		reply   mpa.StartupFields
	}{
		{"revision 1", request(1, "61"), withR(reply(1, "6e 6f"))},
		{"revision 2", request(2, "00 01 00 01"), withR(reply(2, "00 04 00 09 6e 6f"))},
		{"revision 2, left to the ULP", request(2, "3f ff 3f ff"), withR(reply(2, "3f ff 3f ff 6e 6f"))},
		{"revision 2, peer-to-peer", withC(request(2, "80 01 c0 01")), withC(withR(reply(2, "80 04 c0 09 6e 6f")))},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, r := responder(t)
			d.input(append(frame(c.request), "ULP"...), 3)
			d.wantOK()
			got, err := r.Reject([]byte("no"), 4, 9)
			if err != nil || !bytes.Equal(got, frame(c.reply)) || !r.Done() {
				t.Errorf("% x want % x: %v", got, frame(c.reply), err)
			}
			if _, err := r.Accept(epoch, mpa.Answer{}); err != mpa.ErrState {
				t.Errorf("Accept after Reject: %v", err)
			}
		})
	}
}

// Proves Q02, Q03, Q07, Q08, E01, Q16: Requests that are no Requests.
func TestResponderBadRequest(t *testing.T) {
	for _, c := range []struct {
		name    string
		request []byte
		failure mpa.Failure
		text    string
	}{
		{"Reply", vector(t, "siw-reply"), mpa.FailureResponderResponder,
			"Responder/Responder startup: the peer sent an MPA Reply Frame without a Request; both ends were started as Responder"},
		{"Rtr frame", frame(mpa.StartupFields{Key: mpa.KeyRtr, Rev: 1}), mpa.FailureKey,
			`got the Rtr frame of the 2007 proposal ("MPA ID RtR Frame") want "MPA ID Req Frame"`},
		{"Rtr frame as in the text", frame(mpa.StartupFields{Key: "MPA ID Rtr Frame", Rev: 1}), mpa.FailureKey,
			"got the Rtr frame of the 2007 proposal"},
		{"Start Key", append([]byte(mpa.KeyStart), 0xc0), mpa.FailureDialect,
			"got the Start Key of the first MPA drafts"},
		{"TLS", append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc}, make([]byte, 20)...), mpa.FailureKey,
			"got a TLS ClientHello"},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n"), mpa.FailureKey, `got an HTTP request ("GET / HTTP/1.1\r\n")`},
		{"HTTP/2", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), mpa.FailureKey, "got an HTTP/2 preface"},
		{"FPDU after a marker", vector(t, "rfc5044-fig5"), mpa.FailureKey, "got an FPDU after a marker"},
		{"something else", make([]byte, 16), mpa.FailureKey,
			"the peer does not speak MPA, or streaming-mode data precedes its startup frame"},
		{"revision 0", vector(t, "siw-request-v0"), mpa.FailureRevision,
			"Request of revision 0, and this RNIC is a non-permissive one of revisions 1 and 2"},
		{"revision 3 without S", frame(bits(request(3, ""), false, 0)), mpa.FailureRevision,
			"revision 3 is not served with S=0; served are revision 1 (and 2 with S=0), revision 2 or higher with S=1: have the peer use that"},
		{"PD_Length 513", frame(mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, PDLength: 513}),
			mpa.FailurePrivateData, "513 bytes"},
		{"S, PD_Length 0", frame(request(2, "")), mpa.FailurePrivateData,
			"0 bytes of Private Data in a frame with S=1, which must begin with 4 bytes of enhanced data"},
		{"S, PD_Length 3", frame(request(2, "00 00 00")), mpa.FailurePrivateData, "3 bytes of Private Data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, r := responder(t, mpa.ResponderConfig{Kind: mpa.KindNonPermissive})
			d.input(c.request, 0)
			e := d.wantError(c.failure, mpa.CodeStartupFrame, c.text)
			if e.Role != mpa.RoleResponder || e.Fallback || r.Request() != nil {
				t.Errorf("%+v", e)
			}
			if _, err := r.Accept(epoch, mpa.Answer{}); err != mpa.ErrState {
				t.Errorf("Accept: %v", err)
			}
			if _, err := r.Reject(nil, 0, 0); err != mpa.ErrState {
				t.Errorf("Reject: %v", err)
			}
		})
	}
}

// Proves Q03, Q12: a Responder that hears nothing says what that may mean.
func TestResponderTimeout(t *testing.T) {
	d, _ := responder(t)
	d.advance(5*time.Second - 1)
	d.wantOK()
	d.advance(1)
	e := d.wantError(mpa.FailureTimeout, mpa.CodeConnectionLost,
		"mpa: startup as Responder: no MPA Request Frame within 5s: nothing arrived; the peer may be a Responder too (Responder/Responder startup)")
	if !e.Timeout() {
		t.Error("not a timeout")
	}

	d, _ = responder(t)
	d.input(vector(t, "siw-request")[:21], 0)
	d.advance(5 * time.Second)
	d.wantError(mpa.FailureTimeout, mpa.CodeConnectionLost,
		"PD_Length is 4 and 1 byte of Private Data arrived; the peer stopped in the middle of its MPA Request Frame")

	d, r := responder(t)
	d.input(vector(t, "siw-request"), 0)
	d.advance(time.Hour) // the consumer thinks about it
	d.wantOK()
	if _, err := r.Accept(epoch, mpa.Answer{}); err != nil {
		t.Error(err)
	}

	r = mpa.NewResponder(mpa.ResponderConfig{Timeout: -1})
	r.Start(epoch)
	if !r.Deadline().IsZero() {
		t.Errorf("deadline %v without a timeout", r.Deadline())
	}
}

// Proves Q08, Q16: the connection ends in the middle.
func TestResponderPeerClosed(t *testing.T) {
	d, r := responder(t)
	d.input(vector(t, "siw-request")[:20], 0)
	d.err = r.PeerClosed(io.EOF)
	d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost,
		"PD_Length is 4 and 0 bytes of Private Data arrived: EOF; the initiator gave up, or announces more Private Data than it sends")
	if !errors.Is(d.err, io.EOF) {
		t.Errorf("%v is not EOF", d.err)
	}

	d, r = responder(t)
	d.input(vector(t, "siw-request"), 0)
	d.err = r.PeerClosed(io.EOF)
	d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost, "before its Request was answered")
	if again := r.PeerClosed(io.EOF); again != d.err {
		t.Errorf("a second time: %v", again)
	}
	_, accept := r.Accept(epoch, mpa.Answer{})
	if _, reject := r.Reject(nil, 0, 0); accept != d.err || reject != d.err || r.Done() {
		t.Errorf("answers to nobody: %v, %v", accept, reject)
	}

	d, r = responder(t)
	d.input(vector(t, "siw-request"), 0)
	if _, err := r.Accept(epoch, mpa.Answer{}); err != nil {
		t.Fatal(err)
	}
	if err := r.PeerClosed(io.EOF); err == nil || !bytes.Contains([]byte(err.Error()), []byte("after the startup")) {
		t.Errorf("%v", err)
	}
}

// Proves E01, E14: answers that do not fit a frame; the next one may.
func TestResponderBadOffer(t *testing.T) {
	d, r := responder(t)
	d.input(vector(t, "siw-request"), 0)
	for _, o := range []mpa.Answer{{PrivateData: make([]byte, 509)}, {IRD: 0x4000}, {RTR: 0x80}} {
		if _, err := r.Accept(epoch, o); !errors.Is(err, mpa.ErrOffer) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := r.Reject(make([]byte, 509), 0, 0); !errors.Is(err, mpa.ErrOffer) {
		t.Error(err)
	}
	if _, err := r.Reject(nil, 0, 0x4000); !errors.Is(err, mpa.ErrOffer) {
		t.Error(err)
	}
	if b, err := r.Accept(epoch, mpa.Answer{PrivateData: make([]byte, 508)}); err != nil || len(b) != 532 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	r = mpa.NewResponder(mpa.ResponderConfig{})
	if _, err := r.Input(epoch, []byte("x")); err != mpa.ErrState {
		t.Errorf("Input before Start: %v", err)
	}
}
