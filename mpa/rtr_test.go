package mpa_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/mpa"
)

const (
	reqKey = "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 # 00 Key \"MPA ID Req Frame\"\n"
	repKey = "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 # 00 Key \"MPA ID Rep Frame\"\n"
)

// The frames of the 2007 proposal.
const (
	rtrRequest = reqKey + `
		50     # 10 M=0 C=1 R=0 S=1: an Rtr frame will follow
		01     # 11 Rev 1
		00 02  # 12 PD_Length
		68 69  # 14 "hi"`
	rtrReply = repKey + `
		50     # 10 M=0 C=1 R=0 S=1: waiting for the Rtr frame
		01     # 11 Rev 1
		00 02  # 12 PD_Length
		79 6f  # 14 "yo"`
	rtrFrame = `
		4d 50 41 20 49 44 20 52 74 52 20 46 72 61 6d 65 # 00 Key "MPA ID RtR Frame", as in the proposal's bytes
		40     # 10 M=0 C=1 R=0 S=0
		01     # 11 Rev 1
		00 00  # 12 PD_Length 0`
	rtrInLetters = `
		4d 50 41 20 49 44 20 52 74 72 20 46 72 61 6d 65 # 00 Key "MPA ID Rtr Frame", as in its text
		40 01 00 00`
)

var rtrServed = mpa.ResponderConfig{Dialects: mpa.Dialects()}

// Proves T01, T02, T03, T05: Request and Reply with S=1, the Rtr frame, and an Initiator that may
// send the first FPDU, as the Responder may.
func TestRtrInitiator(t *testing.T) {
	d, i := starting(t, mpa.Offer{Dialect: mpa.DialectRtr, PrivateData: []byte("hi")}, unhex(t, rtrRequest))
	d.wantDeadline(10 * time.Second)
	d.input(append(unhex(t, rtrReply), "FPDU"...), 4)
	d.output(unhex(t, rtrFrame))
	d.wantNegotiated(mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectRtr, Revision: 1, PeerRevision: 1, DDPVersion: 1,
		RDMAPVersion: 1, CRC: true,
		PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, PrivateData: []byte("yo"), SendFirst: true,
	})
	if i.Rejected() != nil {
		t.Error("rejected")
	}
}

// Proves T01, T02, T03, T05, Q11: a Responder waits for the Rtr frame, in either spelling, and
// need not wait for an
// FPDU.
func TestRtrResponder(t *testing.T) {
	for _, rtr := range []string{rtrFrame, rtrInLetters} {
		d, r := responder(t, rtrServed)
		d.input(append(unhex(t, rtrRequest), unhex(t, rtr)...), 20)
		want := &mpa.Request{
			Dialect: mpa.DialectRtr, Revision: 1, CRC: true, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation,
			PrivateData: []byte("hi"), Frame: unhex(t, rtrRequest),
		}
		if diff := cmp.Diff(want, r.Request()); diff != "" {
			t.Error(diff)
		}
		d.advance(time.Minute)
		d.wantAnswer(mpa.Answer{NoCRC: true, PrivateData: []byte("yo")}, unhex(t, rtrReply))
		d.wantDeadline(5 * time.Second)
		if r.Done() {
			t.Error("done without the Rtr frame")
		}
		d.input(append(unhex(t, rtr), "first FPDU"...), 10)
		d.output(nil)
		d.wantNegotiated(mpa.Negotiated{
			Role: mpa.RoleResponder, Dialect: mpa.DialectRtr, Revision: 1, PeerRevision: 1, DDPVersion: 1,
			RDMAPVersion: 1, CRC: true,
			PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, PrivateData: []byte("hi"), SendFirst: true,
		})
	}
}

// Proves T02: what an Rtr frame says beside key, C and Rev means nothing.
func TestRtrFrameIgnored(t *testing.T) {
	f := mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1}
	for name, change := range map[string]func(*mpa.StartupFields){
		"M":            func(f *mpa.StartupFields) { f.M = true },
		"R":            func(f *mpa.StartupFields) { f.R = true },
		"S":            func(f *mpa.StartupFields) { f.S = true },
		"Res":          func(f *mpa.StartupFields) { f.Res = 0xf },
		"private data": func(f *mpa.StartupFields) { f.PrivateData = []byte("never defined") },
		"all of it": func(f *mpa.StartupFields) {
			f.M, f.R, f.S, f.Res, f.PrivateData = true, true, true, 0xf, make([]byte, 512)
		},
	} {
		odd := f
		change(&odd)
		d, r := responder(t, rtrServed)
		d.input(unhex(t, rtrRequest), 0)
		d.wantAnswer(mpa.Answer{PrivateData: []byte("yo")}, unhex(t, rtrReply))
		d.input(append(frame(odd), "FPDU"...), 4)
		if n := r.Negotiated(); !r.Done() || n.MarkersSend || string(n.PrivateData) != "hi" {
			t.Errorf("%s: done %v, %+v", name, r.Done(), n)
		}
	}
}

// Proves T02, T05, Q07, Q08: what comes in place of the Rtr frame.
func TestRtrFrameBad(t *testing.T) {
	for _, c := range []struct {
		name, text string
		bytes      []byte
		failure    mpa.Failure
	}{
		{"FPDU of a peer that set S by chance", "the peer set S in its Request without knowing the Rtr frame",
			unhex(t, "00 0e 41 43 00 00 00 00 00 00 00 00 00 00 00 01"), mpa.FailureKey},
		{"Request", "got an MPA Request Frame", unhex(t, rtrRequest), mpa.FailureKey},
		{"Start Key", "got the Start Key", unhex(t, startKeyC), mpa.FailureKey},
		{"other case", `want "MPA ID RtR Frame"`, frame(mpa.StartupFields{Key: "MPA ID RTR Frame", C: true, Rev: 1}),
			mpa.FailureKey},
		{"C=0", "the Rtr frame has C=0, and our Reply had C=1",
			frame(mpa.StartupFields{Key: mpa.KeyRtr, Rev: 1}), mpa.FailureMismatch},
		{"revision 0", "Rtr frame of revision 0", frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true}),
			mpa.FailureRevision},
		{"revision 2", "Rtr frame of revision 2", frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 2}),
			mpa.FailureRevision},
		{"PD_Length", "513 bytes", frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1, PDLength: 513}),
			mpa.FailurePrivateData},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := responder(t, rtrServed)
			d.input(unhex(t, rtrRequest), 0)
			d.wantAnswer(mpa.Answer{PrivateData: []byte("yo")}, unhex(t, rtrReply))
			d.input(c.bytes, 0)
			d.wantError(c.failure, mpa.CodeStartupFrame, c.text)
			d.output(nil)
		})
	}
}

// Proves T05, F14: the Rtr frame repeats the Reply's C, and CRCs are used if the Request's or the
// Reply's is set.
func TestRtrCRC(t *testing.T) {
	for _, c := range []struct{ ours, theirs bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		q := mpa.StartupFields{Key: mpa.KeyRequest, C: c.ours, S: true, Rev: 1}
		d, i := initiator(t, mpa.Offer{Dialect: mpa.DialectRtr, NoCRC: !c.ours}, q)
		p := mpa.StartupFields{Key: mpa.KeyReply, C: c.theirs, S: true, Rev: 1}
		d.input(frame(p), 0)
		d.output(frame(mpa.StartupFields{Key: mpa.KeyRtr, C: c.theirs, Rev: 1}))
		if i.Negotiated().CRC != (c.ours || c.theirs) {
			t.Errorf("%+v: %+v", c, i.Negotiated())
		}
		d, r := responder(t, rtrServed)
		d.input(frame(q), 0)
		p.C = c.ours || c.theirs // ours says what will be
		d.wantReply(mpa.Answer{NoCRC: !c.theirs}, p)
		d.input(frame(mpa.StartupFields{Key: mpa.KeyRtr, C: p.C, Rev: 1}), 0)
		if r.Negotiated().CRC != p.C || !r.Done() {
			t.Errorf("%+v: %+v", c, r.Negotiated())
		}
	}
}

// Proves T04, T01: a Responder that knows nothing of the Rtr frame answers S=0, or S=1 is no
// more than a
// reserved bit to it, and RFC 5044's rules hold.
func TestRtrUnawareResponder(t *testing.T) {
	plain := withC(reply(1, "79 6f"))
	for _, cfg := range []mpa.ResponderConfig{{}, {Dialects: []mpa.Dialect{mpa.DialectRFC5044}}} {
		d, r := responder(t, cfg)
		d.input(unhex(t, rtrRequest), 0)
		d.wantReply(mpa.Answer{PrivateData: []byte("yo")}, plain)
		if n := r.Negotiated(); n.SendFirst || n.Dialect != mpa.DialectRFC5044 || !r.Done() {
			t.Errorf("%+v", n)
		}
	}
	d, i := starting(t, mpa.Offer{Dialect: mpa.DialectRtr, PrivateData: []byte("hi")}, unhex(t, rtrRequest))
	d.input(append(frame(plain), "FPDU"...), 4)
	d.output(nil)
	if n := i.Negotiated(); !n.SendFirst || n.Dialect != mpa.DialectRFC5044 || !i.Done() {
		t.Errorf("%+v", n)
	}
	d, i = starting(t, mpa.Offer{Dialect: mpa.DialectRtr, PrivateData: []byte("hi")}, unhex(t, rtrRequest))
	rejection := withR(reply(1, "6e 6f"))
	rejection.S = true // accepting Replies alone are followed by an Rtr frame
	d.input(append(frame(rejection), "ULP"...), 3)
	d.output(nil)
	want := &mpa.RejectError{Dialect: mpa.DialectRtr, Revision: 1, PrivateData: []byte("no")}
	if diff := cmp.Diff(want, i.Rejected(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Proves T04, T01: an Initiator that knows nothing of the Rtr frame has S=0 in its Request,
// and a Responder
// that does waits for no Rtr frame.
func TestRtrUnawareInitiator(t *testing.T) {
	d, r := responder(t, rtrServed)
	d.input(append(frame(request(1, "")), "first FPDU"...), 10)
	d.wantReply(mpa.Answer{NoCRC: true}, reply(1, ""))
	if n := r.Negotiated(); n.SendFirst || n.Dialect != mpa.DialectRFC5044 || !r.Done() {
		t.Errorf("%+v", n)
	}
	// An Initiator of RFC 5044 takes S of the Reply for a reserved bit.
	d, i := initiator(t, mpa.Offer{Dialect: mpa.DialectRFC5044}, withC(request(1, "")))
	d.input(unhex(t, rtrReply), 0)
	d.output(nil)
	if i.Negotiated().Dialect != mpa.DialectRFC5044 {
		t.Errorf("%+v", i.Negotiated())
	}
}

// Proves Q10, T01: a rejection has S=0, and no Rtr frame is awaited.
func TestRtrReject(t *testing.T) {
	d, r := responder(t, rtrServed)
	d.input(append(unhex(t, rtrRequest), "ULP"...), 3)
	d.wantReject("no", frame(withC(withR(reply(1, "6e 6f")))))
	if !r.Done() || !r.KeepsTCP() || r.Want() != 0 || !r.Deadline().IsZero() {
		t.Errorf("done %v, keeps TCP %v, wants %d", r.Done(), r.KeepsTCP(), r.Want())
	}
}

// Proves Q12, T01: the wait for the Rtr frame ends, and a peer that set S by chance is named.
func TestRtrTimeout(t *testing.T) {
	d, _ := responder(t, mpa.ResponderConfig{Dialects: mpa.Dialects(), Timeout: time.Second})
	d.input(unhex(t, rtrRequest), 0)
	d.wantAnswer(mpa.Answer{PrivateData: []byte("yo")}, unhex(t, rtrReply))
	d.advance(time.Second - 1)
	d.wantOK()
	d.advance(1)
	d.wantError(mpa.FailureTimeout, mpa.CodeConnectionLost,
		"no Rtr frame within 1s: nothing arrived; the peer set S in its Request without knowing the Rtr frame")
}

// Proves T02: the two spellings differ in one byte, and neither is the other frames' key.
func TestRtrKeys(t *testing.T) {
	a, b := unhex(t, rtrFrame), unhex(t, rtrInLetters)
	differ := 0
	for i := range a {
		if a[i] != b[i] {
			differ++
		}
	}
	if differ != 1 || mpa.KeyRtr != string(a[:mpa.KeyLen]) || !strings.EqualFold(string(b[:mpa.KeyLen]), mpa.KeyRtr) {
		t.Errorf("% x and % x", a, b)
	}
	if slices.ContainsFunc([]string{mpa.KeyRequest, mpa.KeyReply},
		func(key string) bool { return bytes.HasPrefix(a, []byte(key)) }) {
		t.Error(mpa.KeyRtr)
	}
}
