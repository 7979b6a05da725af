package mpa_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves Q01, Q09, Q13, E01, E04, E07: a peer-to-peer startup with siw, its Reply and
// the first FPDU in one segment.
func TestInitiatorEnhanced(t *testing.T) {
	d, i := initiator(t, mpa.Offer{NoCRC: true, IRD: 1, ORD: 16}, request(2, "c0 01 c0 10"))
	if i.Done() || i.Dialect() != mpa.DialectRFC6581 {
		t.Errorf("done %v, %v", i.Done(), i.Dialect())
	}
	d.wantDeadline(10 * time.Second)
	d.input(append(vector(t, "siw-reply-p2p"), "first FPDU"...), len("first FPDU"))
	d.wantNegotiated(mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC6581, Revision: 2, PeerRevision: 2,
		DDPVersion: 1, RDMAPVersion: 1,
		Enhanced: true, IRD: 1, ORD: 1, PeerIRD: 1, PeerORD: 1,
		PeerToPeer: true, RTR: mpa.RTRWrite, OfferedRTR: able, AnsweredRTR: mpa.RTRWrite, SendFirst: true,
	})
	if i.Rejected() != nil {
		t.Error("rejected")
	}
	if n, err := i.Input(d.now, []byte("first FPDU")); n != 0 || err != nil {
		t.Errorf("took %d bytes of the FPDU, %v", n, err)
	}
}

// Proves Q01, E02, Q09: revision 1 has no enhanced data, and all the private data is the
// ULP's.
func TestInitiatorRevision1(t *testing.T) {
	d, i := initiator(t, mpa.Offer{Dialect: mpa.DialectRFC5044, IRD: 3, ORD: 4, PrivateData: []byte("hello")},
		withC(request(1, "68 65 6c 6c 6f")))
	if i.Dialect() != mpa.DialectRFC5044 {
		t.Errorf("%v", i.Dialect())
	}
	f := reply(1, "77 65 6c 63 6f 6d 65")
	f.Res, f.S = 0xf, true // reserved bits, not checked in revision 1 [Q06]
	d.input(frame(f), 0)
	d.wantNegotiated(mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC5044, Revision: 1, PeerRevision: 1,
		DDPVersion: 1, RDMAPVersion: 1, CRC: true,
		IRD: 3, ORD: 4, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation,
		PrivateData: []byte("welcome"), SendFirst: true,
	})
}

// Proves E02, E06: a Request for nothing enhanced is an unenhanced one.
func TestInitiatorNothingEnhanced(t *testing.T) {
	o := mpa.Offer{ClientServer: true, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation, NoCRC: true}
	d, _ := initiator(t, o, request(1, ""))
	d.input(vector(t, "siw-reply-v1"), 0)
	d.wantOK()
	o.ORD = 1
	initiator(t, o, request(2, "3f ff 00 01"))
}

// Proves Q04, F11, F14, F13: M goes by direction, C is for both.
func TestInitiatorMarkersAndCRC(t *testing.T) {
	for _, c := range []struct {
		ourM, ourNoCRC, peerM, peerC bool
		crc                          bool
	}{
		{false, false, false, false, true},
		{false, true, false, false, false},
		{false, true, false, true, true},
		{true, false, false, true, true},
		{false, true, true, false, false},
		{true, true, true, false, false},
	} {
		want := request(1, "")
		want.M, want.C = c.ourM, !c.ourNoCRC
		d, i := initiator(t, mpa.Offer{Dialect: mpa.DialectRFC5044, Markers: c.ourM, NoCRC: c.ourNoCRC}, want)
		f := reply(1, "")
		f.M, f.C = c.peerM, c.peerC
		d.input(frame(f), 0)
		d.wantOK()
		n := i.Negotiated()
		if n.MarkersReceive != c.ourM || n.MarkersSend != c.peerM || n.CRC != c.crc {
			t.Errorf("%+v: %+v", c, n)
		}
	}
}

func clone(t *testing.T, o mpa.Offer) *mpa.Initiator {
	t.Helper()
	i, err := mpa.NewInitiator(o)
	testrig.Must(t, err)
	i.Start(epoch)
	return i
}

// Proves Q02, Q03, Q07, Q08, E01, E02, E14, Q16: Replies that are no Replies.
func TestInitiatorBadReply(t *testing.T) {
	long := reply(1, "")
	long.PDLength = 513
	for _, c := range []struct {
		name     string
		dialect  mpa.Dialect
		reply    []byte
		failure  mpa.Failure
		text     string
		fallback bool
	}{
		{"Request", 0, vector(t, "siw-request"), mpa.FailureInitiatorInitiator,
			"Initiator/Initiator startup: the peer sent an MPA Request Frame too; both ends were started as Initiator",
			false},
		{"lower case", 0, frame(mpa.StartupFields{Key: "mpa id rep frame"}), mpa.FailureKey,
			`bad Key at byte 0 of the startup frame: got "mpa id rep frame" want "MPA ID Rep Frame"; only upper and lower case differ`, false},
		{"one bit off", 0, frame(mpa.StartupFields{Key: "MPA ID Rep Framd"}), mpa.FailureKey,
			"byte 15 differs", false},
		{"HTTP", 0, []byte("HTTP/1.1 400 Bad Request\r\n"), mpa.FailureKey, "got an HTTP response", false},
		{"TLS", 0, append([]byte{0x15, 3, 3, 0, 2, 2, 50}, make([]byte, 20)...), mpa.FailureKey,
			"the peer expects TLS on this port", false},
		{"SSH", 0, []byte("SSH-2.0-OpenSSH_9.2p1"), mpa.FailureKey, "an SSH banner", false},
		{"revision 0", 0, frame(reply(0, "")), mpa.FailureMismatch,
			"unenhanced Reply, revision 0, to an enhanced Request", true},
		{"revision 3, plain", 0, append(frame(reply(1, ""))[:17], 3, 0, 0), mpa.FailureRevision,
			"bad Rev at byte 17 of the startup frame: Reply of revision 3 to our Request of revision 2", false},
		{"PD_Length 513", mpa.DialectRFC5044, frame(long), mpa.FailurePrivateData,
			"bad PD_Length at byte 18 of the startup frame: 513 bytes, and at most 512 are allowed", false},
		{"PD_Length 65535", mpa.DialectRFC5044, frame(mpa.StartupFields{Key: mpa.KeyReply, Rev: 1, PDLength: 65535}),
			mpa.FailurePrivateData, "65535 bytes", false},
		{"S without data", 0, frame(reply(2, "00 01 00")), mpa.FailurePrivateData,
			"3 bytes of Private Data in a frame with S=1", false},
		{"revision 1 to 2", 0, vector(t, "siw-reply-v1"), mpa.FailureMismatch,
			"unenhanced Reply, revision 1, to an enhanced Request of revision 2; the responder does not know RFC 6581; retry with revision 1", true},
		{"2 without S to 2", 0, append(frame(reply(1, ""))[:17], 2, 0, 0), mpa.FailureMismatch,
			"unenhanced Reply, revision 2", true},
		{"revision 1 with S to 2", 0, append(frame(mpa.StartupFields{Key: mpa.KeyReply, S: true, Rev: 1}), "x"...),
			mpa.FailureMismatch, "unenhanced Reply", true},
		{"2 with S to 1", mpa.DialectRFC5044, vector(t, "siw-reply"), mpa.FailureMismatch,
			"enhanced Reply to an unenhanced Request", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := mpa.Offer{Dialect: c.dialect}
			d := &dialogue{T: t, m: clone(t, o), twin: clone(t, o), now: epoch}
			d.input(c.reply, 0)
			e := d.wantError(c.failure, mpa.CodeStartupFrame, c.text)
			if e.Fallback != c.fallback || e.Role != mpa.RoleInitiator || e.Timeout() || e.Temporary() {
				t.Errorf("%+v", e)
			}
		})
	}
}

// Proves Q07, E01: "two or higher": an enhanced Reply of a higher revision is taken, and
// its revision reported.
func TestInitiatorHigherRevision(t *testing.T) {
	i := clone(t, mpa.Offer{})
	if _, err := i.Input(epoch, frame(reply(9, "80 00 80 00"))); err != nil || i.Negotiated().PeerRevision != 9 {
		t.Errorf("%+v, %v", i.Negotiated(), err)
	}
	i = clone(t, mpa.Offer{Dialect: mpa.DialectRFC5044})
	if _, err := i.Input(epoch, append(frame(reply(1, ""))[:17], 2, 0, 0)); err != nil ||
		i.Negotiated().PeerRevision != 2 {
		t.Errorf("%+v, %v", i.Negotiated(), err)
	}
}

// Proves Q12, Q16: no Reply in time.
func TestInitiatorTimeout(t *testing.T) {
	d, i := initiator(t, mpa.Offer{Dialect: mpa.DialectRFC5044}, withC(request(1, "")))
	d.input(vector(t, "siw-reply-v1")[:5], 0)
	d.advance(10*time.Second - 1)
	d.wantOK()
	d.advance(1)
	e := d.wantError(mpa.FailureTimeout, mpa.CodeConnectionLost,
		`mpa: startup as Initiator: no MPA Reply Frame within 10s: 5 bytes of a key arrived: "MPA I"`)
	if !e.Timeout() || e.Fallback {
		t.Errorf("%+v", e)
	}
	if err := i.HandleTimeout(d.now.Add(time.Hour)); err != nil {
		t.Errorf("a second time: %v", err)
	}

	i = clone(t, mpa.Offer{Timeout: time.Second})
	if got := i.Deadline(); !got.Equal(epoch.Add(time.Second)) {
		t.Errorf("deadline %v", got)
	}
	i = clone(t, mpa.Offer{Timeout: -1})
	if !i.Deadline().IsZero() || i.HandleTimeout(epoch.Add(time.Hour)) != nil {
		t.Errorf("deadline %v without a timeout", i.Deadline())
	}
}

// Proves Q12: a caller that has no more time learns what was awaited, and its own cause is wrapped.
func TestGiveUp(t *testing.T) {
	cause := errors.New("no more time")
	i := clone(t, mpa.Offer{Timeout: -1})
	r := mpa.NewResponder(mpa.ResponderConfig{})
	r.Start(epoch)
	for _, c := range []struct {
		m interface {
			GiveUp(time.Time, error) error
			HandleTimeout(time.Time) error
		}
		want string
	}{
		{i, "mpa: startup as Initiator: no MPA Reply Frame within 3s: nothing arrived: no more time; "},
		{r, "mpa: startup as Responder: no MPA Request Frame within 3s: nothing arrived: no more time; "},
	} {
		err := c.m.GiveUp(epoch.Add(3*time.Second), cause)
		var s *mpa.StartupError
		if !errors.As(err, &s) || s.Failure != mpa.FailureTimeout || !errors.Is(err, cause) ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s...", err, c.want)
		}
		if again := c.m.GiveUp(epoch.Add(time.Hour), nil); again != err {
			t.Errorf("a second time: %v", again)
		}
		if late := c.m.HandleTimeout(epoch.Add(time.Hour)); late != nil {
			t.Errorf("the timeout after that: %v", late)
		}
	}
}

// Proves E13, Q16: a close on a revision 2 Request advises revision 1.
func TestInitiatorPeerClosed(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for _, c := range []struct {
		name     string
		offer    mpa.Offer
		arrived  []byte
		text     string
		fallback bool
	}{
		{"revision 2", mpa.Offer{}, nil, "nothing arrived: connection reset by peer; a responder that does not know RFC 6581 ends an enhanced startup this way; retry with revision 1", true},
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, nil, "the responder refused the Request", false},
		{"in the key", mpa.Offer{}, vector(t, "siw-reply")[:9], "9 bytes of a key arrived", false},
		{"in the header", mpa.Offer{}, vector(t, "siw-reply")[:17], "17 of 20 bytes of its header arrived", false},
		{"in the private data", mpa.Offer{}, vector(t, "siw-reply")[:22],
			"PD_Length is 4 and 2 bytes of Private Data arrived", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := clone(t, c.offer)
			d := &dialogue{T: t, m: i, twin: clone(t, c.offer), now: epoch}
			d.input(c.arrived, 0)
			d.err = i.PeerClosed(reset)
			if e := d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost, c.text); e.Fallback != c.fallback {
				t.Errorf("Fallback %v", e.Fallback)
			}
			if !errors.Is(d.err, reset) {
				t.Errorf("%v is not the socket's error", d.err)
			}
			if again := i.PeerClosed(io.EOF); again != d.err {
				t.Errorf("a second time: %v", again)
			}
		})
	}
	i := clone(t, mpa.Offer{Dialect: mpa.DialectRFC5044})
	i.Input(epoch, vector(t, "siw-reply-v1"))
	if err := i.PeerClosed(io.EOF); err == nil || !strings.Contains(err.Error(), "after the startup") {
		t.Errorf("after the startup: %v", err)
	}
}

// Proves Q08, E01, E14: offers that do not fit a frame.
func TestInitiatorBadOffer(t *testing.T) {
	for name, o := range map[string]mpa.Offer{
		"dialect":                    {Dialect: 99},
		"IRD":                        {IRD: 0x4000},
		"ORD":                        {ORD: 0xffff},
		"RTR":                        {RTR: 8},
		"private data, enhanced":     {PrivateData: make([]byte, 509)},
		"private data, not enhanced": {Dialect: mpa.DialectRFC5044, PrivateData: make([]byte, 513)},
	} {
		if _, err := mpa.NewInitiator(o); !errors.Is(err, mpa.ErrOffer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []mpa.Offer{
		{PrivateData: make([]byte, 508)}, {Dialect: mpa.DialectRFC5044, PrivateData: make([]byte, 512)},
	} {
		i, err := mpa.NewInitiator(o)
		testrig.Must(t, err)
		if b := i.Start(epoch); len(b) != mpa.StartupHeaderLen+mpa.MaxPrivateData {
			t.Errorf("%d bytes", len(b))
		}
	}
	i, _ := mpa.NewInitiator(mpa.Offer{})
	if _, err := i.Input(epoch, []byte("x")); err != mpa.ErrState {
		t.Errorf("Input before Start: %v", err)
	}
}

// Proves Q08, Q13: the largest Reply, and the private data belongs to the machine.
func TestInitiatorLargestReply(t *testing.T) {
	i := clone(t, mpa.Offer{Dialect: mpa.DialectRFC5044})
	f := reply(1, "")
	f.PrivateData = bytes.Repeat([]byte{'p'}, 512)
	b := append(frame(f), 0, 0)
	if n, err := i.Input(epoch, b); n != 532 || err != nil {
		t.Fatal(n, err)
	}
	clear(b)
	if got := i.Negotiated().PrivateData; !bytes.Equal(got, f.PrivateData) {
		t.Errorf("% x", got)
	}
}

// Proves Q13: a reader that asks for what a machine wants never reads beyond the frame.
func TestWant(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     interface{ Want() int }
		frame []byte
	}{
		{"Initiator", clone(t, mpa.Offer{}), frame(reply(2, "80 00 80 00 61 62"))},
		{"Initiator, no private data", clone(t, mpa.Offer{Dialect: mpa.DialectRFC5044}), frame(reply(1, ""))},
		{"Responder", newResponder(), frame(request(2, "80 00 80 00"))},
	} {
		stream := append(bytes.Clone(c.frame), "first FPDU"...)
		for c.m.Want() > 0 {
			n, err := c.m.(machine).Input(epoch, stream[:c.m.Want()])
			if err != nil || n == 0 {
				t.Fatalf("%s: %d, %v", c.name, n, err)
			}
			stream = stream[n:]
		}
		if string(stream) != "first FPDU" {
			t.Errorf("%s: %q is left", c.name, stream)
		}
	}
}

func newResponder() *mpa.Responder {
	r := mpa.NewResponder(mpa.ResponderConfig{})
	r.Start(epoch)
	return r
}
