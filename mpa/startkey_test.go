package mpa_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/mpa"
)

const identFrame = "4d 50 41 20 69 64 65 6e 74 20 66 72 61 6d 65 # 00 Key \"MPA ident frame\"\n"

// Start Keys with every state of the two bits.
const (
	startKeyPlain = identFrame + "00 # 0f M=0 C=0 Res=0 Rev=0"
	startKeyM     = identFrame + "80 # 0f M=1 C=0 Res=0 Rev=0"
	startKeyC     = identFrame + "40 # 0f M=0 C=1 Res=0 Rev=0"
	startKeyMC    = identFrame + "c0 # 0f M=1 C=1 Res=0 Rev=0"
)

// Proves K01: 15 bytes of key and one of bits.
func TestStartKeyFrames(t *testing.T) {
	for _, c := range []struct {
		bytes  string
		fields mpa.StartKeyFields
		line   string
	}{
		{startKeyPlain, mpa.StartKeyFields{}, "MPA ident frame rev 0"},
		{startKeyM, mpa.StartKeyFields{M: true}, "MPA ident frame M rev 0"},
		{startKeyC, mpa.StartKeyFields{C: true}, "MPA ident frame C rev 0"},
		{startKeyMC, mpa.StartKeyFields{M: true, C: true}, "MPA ident frame M C rev 0"},
		{identFrame + "30 # Res=3", mpa.StartKeyFields{Res: 3}, "MPA ident frame res 0x3 rev 0"},
		{identFrame + "9f # M=1 Res=1 Rev=15", mpa.StartKeyFields{M: true, Res: 1, Rev: 15},
			"MPA ident frame M res 0x1 rev 15"},
		{"4d 50 41 00 00 00 00 00 00 00 00 00 00 00 00 05", mpa.StartKeyFields{Key: "MPA", Rev: 5},
			`MPA` + strings.Repeat(`\x00`, 12) + " rev 5"},
	} {
		want := unhex(t, c.bytes)
		if got := mpa.AppendStartKey([]byte("before"), &c.fields); !bytes.Equal(got,
			append([]byte("before"), want...)) {
			t.Errorf("%s: % x", c.line, got)
		}
		k, err := mpa.ParseStartKey(append(bytes.Clone(want), "first FPDU"...))
		if err != nil || k.String() != c.line || len(k) != mpa.StartKeyLen {
			t.Errorf("%q want %q: %v", k, c.line, err)
		}
		f := &c.fields
		if k.M() != f.M || k.C() != f.C || k.Res() != f.Res || k.Rev() != f.Rev || !strings.HasPrefix(k.Key(), "MPA") {
			t.Errorf("%v: %+v", k, f)
		}
	}
	var e *mpa.Error
	if _, err := mpa.ParseStartKey(make([]byte, 15)); !errors.As(err, &e) ||
		e.Code != mpa.CodeStartupFrame || e.Hint == "" {
		t.Errorf("15 bytes: %v", err)
	}
}

// startKeyStates are what two ends may ask for and what comes of it.
var startKeyStates = []struct {
	passive, active string // Start Keys
	own             mpa.Offer
	peer            mpa.Answer
	crc             bool
}{
	{startKeyC, startKeyC, mpa.Offer{}, mpa.Answer{}, true},
	{startKeyPlain, startKeyPlain, mpa.Offer{NoCRC: true}, mpa.Answer{NoCRC: true}, false},
	{startKeyM, startKeyPlain, mpa.Offer{NoCRC: true, Markers: true}, mpa.Answer{NoCRC: true}, false},
	{startKeyPlain, startKeyM, mpa.Offer{NoCRC: true}, mpa.Answer{NoCRC: true, Markers: true}, false},
	{startKeyM, startKeyMC, mpa.Offer{NoCRC: true, Markers: true}, mpa.Answer{Markers: true}, true},
	// The Active side's C says what will be, as the Passive side asked for CRCs.
	{startKeyMC, startKeyC, mpa.Offer{Markers: true}, mpa.Answer{NoCRC: true}, true},
}

// Proves K02, K03, Q04, F11, F14: the Passive side sends its Start Key first, and may send an
// FPDU when it has the peer's, whose bytes it leaves alone.
func TestStartKeyPassive(t *testing.T) {
	for _, c := range startKeyStates {
		o := c.own
		o.Dialect, o.IRD, o.ORD = mpa.DialectStartKey, 3, 4
		d, i := starting(t, o, unhex(t, c.passive))
		d.wantDeadline(10 * time.Second)
		if i.Negotiated().SendFirst || i.Want() != mpa.StartKeyLen {
			t.Errorf("%+v, wants %d", i.Negotiated(), i.Want())
		}
		d.input(append(unhex(t, c.active), "first FPDU"...), 10)
		d.output(nil)
		d.wantNegotiated(mpa.Negotiated{
			Role: mpa.RoleInitiator, Dialect: mpa.DialectStartKey, MarkersReceive: c.own.Markers,
			MarkersSend: c.peer.Markers, CRC: c.crc,
			IRD: 3, ORD: 4, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, SendFirst: true,
		})
	}
}

// Proves K02, K03, Q04, Q11, F11, F14: the Active side waits for the Start Key and answers it;
// it does
// not send the first FPDU.
func TestStartKeyActive(t *testing.T) {
	for _, c := range startKeyStates {
		d, r := responder(t)
		d.input(append(unhex(t, c.passive), "first FPDU"...), 10)
		d.output(nil)
		q := r.Request()
		want := &mpa.Request{
			Dialect: mpa.DialectStartKey, Markers: c.own.Markers, CRC: !c.own.NoCRC,
			IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation,
		}
		if diff := cmp.Diff(want, q); diff != "" {
			t.Error(diff)
		}
		o := c.peer
		o.IRD, o.ORD = 5, 6
		d.wantAnswer(o, unhex(t, c.active))
		d.output(nil)
		d.wantNegotiated(mpa.Negotiated{
			Role: mpa.RoleResponder, Dialect: mpa.DialectStartKey, MarkersReceive: c.peer.Markers,
			MarkersSend: c.own.Markers, CRC: c.crc,
			IRD: 5, ORD: 6, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation,
		})
	}
}

// Proves K04, Q02, Q16: one byte that is wrong closes the connection, at either end.
func TestStartKeyWrongKey(t *testing.T) {
	for at := range 15 {
		bad := unhex(t, startKeyC)
		bad[at] ^= 4
		d, _ := starting(t, mpa.Offer{Dialect: mpa.DialectStartKey}, unhex(t, startKeyC))
		d.input(bad, 0)
		e := d.wantError(mpa.FailureKey, mpa.CodeStartupFrame, " differs: the peer has a wrong key")
		if e.Err.Offset != uint64(at) {
			t.Errorf("byte %d: %v", at, e)
		}
		d, _ = responder(t)
		d.input(bad, 0)
		d.wantError(mpa.FailureKey, mpa.CodeStartupFrame, "compared with the Start Key, byte")
	}
	for _, c := range []struct {
		name, text string
		bytes      []byte
		failure    mpa.Failure
	}{
		{"Reply", "both ends must use the same dialect", frame(reply(1, "")), mpa.FailureKey},
		{"Request", "both ends were started as Initiator", frame(request(1, "")), mpa.FailureInitiatorInitiator},
		{"HTTP", "does not speak MPA", []byte("HTTP/1.0 400 Bad Request"), mpa.FailureKey},
		{"FPDU", "the peer is in Full Operation already",
			unhex(t, "00 0e 41 43 00 00 00 00 00 00 00 00 00 00 00 01"), mpa.FailureKey},
	} {
		d, _ := starting(t, mpa.Offer{Dialect: mpa.DialectStartKey}, unhex(t, startKeyC))
		d.input(c.bytes, 0)
		d.wantError(c.failure, mpa.CodeStartupFrame, c.text)
	}
}

// Proves K05: Rev 0 is sent (see the Start Keys above) and demanded, and Res not looked at.
func TestStartKeyRevision(t *testing.T) {
	for rev := range uint8(16) {
		for res := range uint8(4) {
			key := mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true, Res: res, Rev: rev})
			passive, _ := starting(t, mpa.Offer{Dialect: mpa.DialectStartKey}, unhex(t, startKeyC))
			active, _ := responder(t)
			for _, d := range []*dialogue{passive, active} {
				d.input(key, 0)
				if rev == 0 {
					d.wantOK()
					continue
				}
				d.wantError(mpa.FailureRevision, mpa.CodeStartupFrame,
					"bad Rev at byte 15 of the startup frame: Start Key of revision")
			}
			if rev == 0 {
				active.wantAnswer(mpa.Answer{}, unhex(t, startKeyC))
			}
		}
	}
}

// Proves K04: where the dialect is not served, a Start Key is named as such.
func TestStartKeyNotServed(t *testing.T) {
	for _, cfg := range []mpa.ResponderConfig{
		{Kind: mpa.KindNonPermissive}, {Dialects: []mpa.Dialect{mpa.DialectRFC5044}},
		{Kind: mpa.KindNonPermissive, Messages: true},
	} {
		d, _ := responder(t, cfg)
		d.input(unhex(t, startKeyC), 0)
		d.wantError(mpa.FailureDialect, mpa.CodeStartupFrame, "the Start Key is not served here")
	}
}

// Proves N01, K01: an RDMAC RNIC asks for markers and CRCs, whatever its offer says.
func TestStartKeyRDMAC(t *testing.T) {
	d, i := starting(t, mpa.Offer{Kind: mpa.KindRDMAC, Dialect: mpa.DialectStartKey,
		NoCRC: true}, unhex(t, startKeyMC))
	d.input(unhex(t, startKeyPlain), 0)
	if n := i.Negotiated(); !n.MarkersReceive || n.MarkersSend || !n.CRC {
		t.Errorf("%+v", n)
	}
	d, _ = responder(t, mpa.ResponderConfig{Kind: mpa.KindRDMAC})
	d.input(unhex(t, startKeyPlain), 0)
	d.wantAnswer(mpa.Answer{NoCRC: true}, unhex(t, startKeyMC))
}

// Private data messages.
const (
	helloMessage = `00 05           # 00 Private Data Length
		            68 65 6c 6c 6f  # 02 "hello"`
	noMessage    = "00 02 6e 6f      # \"no\""
	emptyMessage = "00 00            # no data"
)

// Proves K07: a length of two bytes and the data.
func TestPrivateDataMessage(t *testing.T) {
	if got := mpa.AppendPrivateDataMessage(nil, []byte("hello"), -1); !bytes.Equal(got, unhex(t, helloMessage)) {
		t.Errorf("% x", got)
	}
	if got := mpa.AppendPrivateDataMessage([]byte("x"), []byte("no"), 0xfffe); !bytes.Equal(got,
		unhex(t, "78 ff fe 6e 6f")) {
		t.Errorf("% x", got)
	}
	if got := mpa.AppendPrivateDataMessage(nil, []byte("no"), 0); !bytes.Equal(got, unhex(t, "00 00 6e 6f")) {
		t.Errorf("% x", got)
	}
	m, err := mpa.ParsePrivateDataMessage(append(unhex(t, helloMessage), "Start Key"...))
	if err != nil || string(m.PrivateData()) != "hello" {
		t.Errorf("%q, %v", m, err)
	}
	if m, err := mpa.ParsePrivateDataMessage(unhex(t, emptyMessage)); err != nil || len(m.PrivateData()) != 0 {
		t.Errorf("%q, %v", m, err)
	}
	for _, short := range []string{"", "00", "00 01", "ff ff 00"} {
		var e *mpa.Error
		if _, err := mpa.ParsePrivateDataMessage(unhex(t, short)); !errors.As(err, &e) ||
			e.Code != mpa.CodeStartupFrame {
			t.Errorf("%s: %v", short, err)
		}
	}
}

// Proves K07, K02, K03: an Initiator sends its private data, hears the answer, and begins with its
// Start Key.
func TestMessagesPassive(t *testing.T) {
	o := mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true, PrivateData: []byte("hello")}
	d, i := starting(t, o, unhex(t, helloMessage))
	d.advance(time.Second)
	d.input(unhex(t, noMessage), 0)
	d.output(unhex(t, startKeyC))
	d.wantDeadline(9 * time.Second)
	if i.Done() {
		t.Error("done without a Start Key")
	}
	d.input(append(unhex(t, startKeyMC), "first FPDU"...), 10)
	d.wantNegotiated(mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectStartKey, MarkersSend: true, CRC: true, SendFirst: true,
		PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, PrivateData: []byte("no"),
	})
}

// Proves K07, K06, K02, Q11: a Responder answers with the last message of the streaming mode,
// then waits for
// the Start Key and answers that.
func TestMessagesActive(t *testing.T) {
	d, r := responder(t, mpa.ResponderConfig{Messages: true, Timeout: 3 * time.Second})
	d.wantDeadline(3 * time.Second)
	d.input(append(unhex(t, helloMessage), unhex(t, startKeyM)...), mpa.StartKeyLen)
	d.wantDeadline(0)
	want := &mpa.Request{
		Dialect: mpa.DialectStartKey, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation, PrivateData: []byte("hello"),
	}
	if diff := cmp.Diff(want, r.Request()); diff != "" {
		t.Error(diff)
	}
	d.advance(time.Hour) // the consumer thinks about it
	d.wantAnswer(mpa.Answer{NoCRC: true, PrivateData: []byte("no")}, unhex(t, noMessage))
	d.wantDeadline(3 * time.Second)
	if r.Done() {
		t.Error("done without a Start Key")
	}
	d.input(append(unhex(t, startKeyM), "first FPDU"...), 10)
	d.output(unhex(t, startKeyPlain))
	d.wantNegotiated(mpa.Negotiated{
		Role: mpa.RoleResponder, Dialect: mpa.DialectStartKey, MarkersSend: true,
		PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, PrivateData: []byte("hello"),
	})
}

// Proves K07: with Messages set, a Request Frame or a Start Key is served as well.
func TestMessagesOrFrames(t *testing.T) {
	cfg := mpa.ResponderConfig{Messages: true}
	d, _ := responder(t, cfg)
	d.input(unhex(t, startKeyC), 0)
	d.wantAnswer(mpa.Answer{}, unhex(t, startKeyC))
	d, _ = responder(t, cfg)
	d.input(frame(request(1, "61")), 0)
	d.wantReply(mpa.Answer{}, withC(reply(1, "")))
}

// Proves K07: the Responder rejects with data, or without a word where there was a bare Start
// Key, and
// closes.
func TestMessagesReject(t *testing.T) {
	d, r := responder(t, mpa.ResponderConfig{Messages: true})
	d.input(unhex(t, helloMessage), 0)
	d.wantReject("no", unhex(t, noMessage))
	if !r.Done() || r.KeepsTCP() || r.Want() != 0 {
		t.Errorf("done %v, keeps TCP %v, wants %d", r.Done(), r.KeepsTCP(), r.Want())
	}
	d, r = responder(t)
	d.input(unhex(t, startKeyC), 0)
	if _, err := r.Reject([]byte("no"), 0, 0); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("private data for a Start Key: %v", err)
	}
	if _, err := r.Accept(epoch, mpa.Answer{PrivateData: []byte("yes")}); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("private data for a Start Key: %v", err)
	}
	d.wantReject("", nil)
	if !r.Done() || r.KeepsTCP() {
		t.Errorf("done %v, keeps TCP %v", r.Done(), r.KeepsTCP())
	}
}

// Proves K07, Q16: a close after the answer is a rejection, and its data reaches the consumer.
func TestMessagesRejected(t *testing.T) {
	o := mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true}
	d, i := starting(t, o, unhex(t, emptyMessage))
	d.input(unhex(t, noMessage), 0)
	d.output(unhex(t, startKeyC))
	d.closed()
	want := &mpa.RejectError{Dialect: mpa.DialectStartKey, PrivateData: []byte("no"), Closed: true}
	if diff := cmp.Diff(want, i.Rejected(), cmpopts.EquateEmpty()); diff != "" || d.err != error(i.Rejected()) {
		t.Errorf("%v: %s", d.err, diff)
	}
	if !strings.Contains(d.err.Error(), `closed the connection after its private data message, to reject it, or because our Start Key came too late for it: 2 bytes of private data "no"`) {
		t.Error(d.err)
	}
	if !i.Done() || i.Want() != 0 || !i.Deadline().IsZero() || i.PeerClosed(nil) != d.err {
		t.Errorf("done %v, wants %d, deadline %v, again: %v", i.Done(), i.Want(), i.Deadline(), i.PeerClosed(nil))
	}
	// In the middle of a Start Key it is none.
	d, _ = starting(t, o, unhex(t, emptyMessage))
	d.input(unhex(t, noMessage+"\n"+identFrame), 0)
	d.closed()
	d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost, `15 bytes of a key arrived`)
}

// Proves K07, Q08: messages longer than private data may be, and what is no message.
func TestMessagesLength(t *testing.T) {
	o := mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true, PrivateData: make([]byte, 512)}
	long := mpa.AppendPrivateDataMessage(nil, o.PrivateData, -1)
	d, _ := starting(t, o, long)
	d.input(long, 0)
	d.output(unhex(t, startKeyC))
	o.PrivateData = make([]byte, 513)
	if _, err := mpa.NewInitiator(o); !errors.Is(err, mpa.ErrOffer) {
		t.Error(err)
	}
	o.PrivateData, o.Messages = []byte("x"), false
	if _, err := mpa.NewInitiator(o); !errors.Is(err, mpa.ErrOffer) || !strings.Contains(err.Error(), "Messages") {
		t.Error(err)
	}
	for content, text := range map[string]string{
		"\x02\x01": "513 bytes",
		"HTTP/1":   `18516 bytes ("HT"), and at most 512`,
	} {
		d, _ := starting(t, mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true}, []byte{0, 0})
		d.input([]byte(content), 0)
		d.wantError(mpa.FailurePrivateData, mpa.CodeStartupFrame, text)
	}
	// A Responder takes it for the beginning of a key.
	d, _ = responder(t, mpa.ResponderConfig{Messages: true})
	d.input(append([]byte{2, 1}, make([]byte, 14)...), 0)
	d.wantError(mpa.FailureKey, mpa.CodeStartupFrame, "the peer does not speak MPA")
	// A message to a Responder that looks for none.
	d, _ = responder(t)
	d.input(unhex(t, helloMessage), 0)
	d.advance(5 * time.Second)
	d.wantError(mpa.FailureTimeout, mpa.CodeConnectionLost, "may be a private data message")
	d, _ = responder(t)
	d.input(unhex(t, helloMessage), 0)
	d.closed()
	d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost, "may be a private data message")
}
