package startup

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// meetings are pairs of an Initiator's offer and what a Listener serves, with the dialect
// that they come to. Private data goes both ways where there is room for it.
var meetings = []struct {
	name   string
	offer  mpa.Offer
	listen iwarp.ListenConfig
	want   mpa.Dialect
}{
	{"enhanced", mpa.Offer{}, iwarp.ListenConfig{}, mpa.DialectRFC6581},
	{"enhanced, all served", mpa.Offer{}, iwarp.ListenConfig{Dialects: mpa.Dialects(),
		Messages: true}, mpa.DialectRFC6581},
	{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, iwarp.ListenConfig{}, mpa.DialectRFC5044},
	{"revision 1, all served", mpa.Offer{Dialect: mpa.DialectRFC5044},
		iwarp.ListenConfig{Dialects: mpa.Dialects(), Messages: true}, mpa.DialectRFC5044},
	{"Rtr frame, all served", mpa.Offer{Dialect: mpa.DialectRtr},
		iwarp.ListenConfig{Dialects: mpa.Dialects(), Messages: true}, mpa.DialectRtr},
	{"Rtr frame, alone", mpa.Offer{Dialect: mpa.DialectRtr},
		iwarp.ListenConfig{Dialects: []mpa.Dialect{mpa.DialectRtr}}, mpa.DialectRtr},
	{"Rtr frame, not known there", mpa.Offer{Dialect: mpa.DialectRtr}, iwarp.ListenConfig{}, mpa.DialectRFC5044},
	{"revision 0", mpa.Offer{Dialect: mpa.DialectRevision0}, iwarp.ListenConfig{}, mpa.DialectRevision0},
	{"revision 0, all served", mpa.Offer{Kind: mpa.KindRDMAC},
		iwarp.ListenConfig{Dialects: mpa.Dialects(), Messages: true}, mpa.DialectRevision0},
	{"Start Key", mpa.Offer{Dialect: mpa.DialectStartKey}, iwarp.ListenConfig{}, mpa.DialectStartKey},
	{"Start Key, all served", mpa.Offer{Dialect: mpa.DialectStartKey},
		iwarp.ListenConfig{Dialects: mpa.Dialects(), Messages: true}, mpa.DialectStartKey},
	{"Start Key with messages", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true},
		iwarp.ListenConfig{Messages: true}, mpa.DialectStartKey},
}

// TestDialects brings up connections in every dialect, with markers or without, and has
// Sends, Writes and Reads go both ways: of a Dialer and a Listener, on a TCP connection
// that is there already, and over a pipe.
//
// Proves T03, T04, K03, K07, N05, N06, Q08, Q14.
func TestDialects(t *testing.T) {
	for _, c := range meetings {
		for _, markers := range []bool{false, true} {
			s := rig.Setup{Listen: c.listen}
			s.MPA, s.MPA.Markers, s.Accept.MPA.Markers = c.offer, markers, markers
			there, back := "from the Initiator", "from the Responder"
			if c.want == mpa.DialectStartKey && !c.offer.Messages {
				there, back = "", "" // the Start Key has no room
			}
			s.MPA.PrivateData, s.Accept.MPA.PrivateData = []byte(there), []byte(back)
			run := func(t *testing.T, s rig.Setup) {
				ini, res := s.Connect(t)
				i, r := ini.Negotiated(), res.Negotiated()
				if i.Dialect != c.want || r.Dialect != c.want || i.FellBack {
					t.Errorf("came to %v and %v, want %v", i.Dialect, r.Dialect, c.want)
				}
				if string(i.PrivateData) != back || string(r.PrivateData) != there {
					t.Errorf("private data %q and %q", r.PrivateData, i.PrivateData)
				}
				version := uint8(1)
				if c.want == mpa.DialectRevision0 || c.want == mpa.DialectStartKey {
					version = 0
				}
				if i.DDPVersion != version || r.DDPVersion != version ||
					i.MarkersSend != (markers || c.want == mpa.DialectRevision0) {
					t.Errorf("the Initiator has %+v, the Responder %+v", i, r)
				}
				rig.WorksBothWays(t, ini, res)
				rig.Finish(t, ini, res)
			}
			name := fmt.Sprintf("%s, markers %t", c.name, markers)
			late, pipe := s, s
			late.Delay, pipe.Delay, pipe.Pipe = true, true, true
			t.Run(name, func(t *testing.T) { t.Parallel(); run(t, s) })
			t.Run(name+", TCP there already", func(t *testing.T) { t.Parallel(); run(t, late) })
			t.Run(name+", pipe", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { run(t, pipe) }) })
		}
	}
}

// TestRtrFrame has the consumer of a Responder post a Send at once: it leaves when the
// Rtr frame has arrived, and no FPDU is waited for. In an Initiator such a Send is
// nothing unusual.
//
// Proves T03, T01, T02, T05.
func TestRtrFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := rig.Request(1)
		f.S = true
		p, req := rig.AskOverPipe(t.Context(), t, iwarp.ListenConfig{Dialects: mpa.Dialects()}, rig.Frame(f))
		res := &rig.End{T: t}
		accepted := rig.DialInBackground(t, func() error {
			qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{Prepare: postHello})
			res.QP = qp
			return err
		})
		if f := p.WantFrame(mpa.KeyReply); !f.S() || f.Rev() != 1 {
			t.Errorf("answered %v", f)
		}
		p.WantSilence()
		p.Send(rig.Frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1}))
		if s := p.Want(rdmap.OpSend); string(s.Payload) != "hello" {
			t.Errorf("got %q", s.Payload)
		}
		rig.Should(t, <-accepted)
		_ = res.Abort()
	})
	synctest.Test(t, func(t *testing.T) {
		ini := rig.NewEnd(t, iwarp.RNICConfig{})
		p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{
			PD: ini.PD, MPA: mpa.Offer{Dialect: mpa.DialectRtr}, QP: iwarp.QPConfig{StrictRTR: true},
			Prepare: ini.TwoReceives,
		})
		if f := p.WantFrame(mpa.KeyRequest); !f.S() || f.Rev() != 1 {
			t.Errorf("asked %v", f)
		}
		f := rig.Reply(1)
		f.S = true
		p.Send(rig.Frame(f))
		if f := p.WantFrame(mpa.KeyRtr); f.S() || f.R() || !f.C() || f.PDLength() != 0 {
			t.Errorf("sent %v", f)
		}
		p.Send(p.Message(rdmap.OpSend, 1, []byte("first")))
		rig.Should(t, <-outcome)
		ini.WantReceived(0, iwarp.StatusSuccess)
		if odd := ini.Stats().Odd; odd != (iwarp.Stats{}).Odd {
			t.Errorf("counted %+v", odd)
		}
		_ = ini.Abort()
	})
}

// postHello is a Prepare.
func postHello(qp *iwarp.QP) error {
	return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello")})
}

func startKey(m bool) []byte { return mpa.AppendStartKey(nil, &mpa.StartKeyFields{M: m, C: true}) }

// TestStartKeyOrder plays the peer of both roles of a Start Key: the Initiator sends no
// FPDU before it has the peer's key, the Responder none before it has received one.
//
// Proves K03, K02.
func TestStartKeyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey,
			Markers: true}, Prepare: postHello})
		p.WantBytes(startKey(true))
		p.WantSilence()
		p.Send(startKey(true))
		p.BecomeRDMAC()
		if s := p.Want(rdmap.OpSend); string(s.Payload) != "hello" {
			t.Errorf("got %q", s.Payload)
		}
		rig.Should(t, <-outcome)
		p.Conn.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		p, req := rig.AskOverPipe(t.Context(), t, iwarp.ListenConfig{}, startKey(true))
		p.WantSilence() // until it is accepted
		res := &rig.End{T: t}
		accepted := rig.DialInBackground(t, func() error {
			qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{MPA: mpa.Answer{Markers: true}, Prepare: postHello})
			res.QP = qp
			return err
		})
		p.WantBytes(startKey(true))
		rig.Must(t, <-accepted)
		p.WantSilence()
		p.BecomeRDMAC()
		p.Send(p.Write(1, 0, nil))
		if s := p.Want(rdmap.OpSend); string(s.Payload) != "hello" {
			t.Errorf("got %q", s.Payload)
		}
		_ = res.Abort()
	})
}

// TestNoStartKey sends FPDUs, or another key, where a Start Key belongs: nothing of it
// is taken for an FPDU, and the connection is closed with an error.
//
// Proves K03, K04, K05.
func TestNoStartKey(t *testing.T) {
	fpdu := rig.NewPeer(t, nil).Write(1, 0, make([]byte, 64))
	otherRevision := startKey(false)
	otherRevision[15] |= 1
	for _, c := range []struct {
		name string
		sent []byte
		want mpa.Failure
	}{
		{"an FPDU", fpdu, mpa.FailureKey},
		{"a Reply", rig.Frame(rig.Reply(1)), mpa.FailureKey},
		{"one byte wrong", append([]byte("MPA ident frams"), 0x40), mpa.FailureKey},
		{"another revision", otherRevision, mpa.FailureRevision},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey}})
			p.WantBytes(startKey(false))
			go func() { _, _ = p.Conn.Write(append(c.sent, fpdu...)) }()
			wantFailure(t, c.name, <-outcome, c.want)
			p.WantClosed()
		})
		synctest.Test(t, func(t *testing.T) { // after private data messages
			p, outcome := initiateTo(t.Context(), t,
				iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true}})
			p.WantBytes([]byte{0, 0})
			p.Send([]byte{0, 0})
			p.WantBytes(startKey(false))
			go func() { _, _ = p.Conn.Write(append(c.sent, fpdu...)) }()
			wantFailure(t, c.name, <-outcome, c.want)
			p.WantClosed()
		})
	}
	only := iwarp.ListenConfig{Dialects: []mpa.Dialect{mpa.DialectStartKey}}
	for _, sent := range [][]byte{fpdu, rig.Frame(rig.Request(1)), append([]byte("MPA ident frams"), 0x40)} {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := respondTo(t.Context(), t, only)
			go func() { _, _ = p.Conn.Write(sent) }()
			if err := <-outcome; err == nil {
				t.Errorf("took %x", sent)
			}
			p.WantClosed()
		})
	}
}

// TestStartKeyReject rejects after a private data message: with data, by closing TCP.
//
// Proves K07, Q10.
func TestStartKeyReject(t *testing.T) {
	for _, data := range []string{"", "not you"} {
		ln := rig.Listen(t, iwarp.ListenConfig{Messages: true})
		served := rig.DialInBackground(t, func() error {
			req, err := ln.Accept(rig.Within(t))
			if err != nil {
				return err
			}
			if req.MPA().Dialect != mpa.DialectStartKey || string(req.PrivateData()) != "let me in" {
				t.Errorf("the Request is %+v", req.MPA())
			}
			c, err := req.RejectKeep([]byte(data), 0, 0)
			if err != nil {
				return err
			}
			wantGone(t, c)
			return nil
		})
		d := iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true,
			PrivateData: []byte("let me in")}}
		_, err := d.Dial(rig.Within(t), "tcp", ln.Addr().String())
		var rejected *iwarp.RejectError
		if !errors.As(err, &rejected) {
			t.Fatal(err)
		}
		if !rejected.Closed || string(rejected.PrivateData) != data || rejected.Dialect != mpa.DialectStartKey {
			t.Errorf("rejected: %+v", rejected.RejectError)
		}
		wantGone(t, rejected.Conn)
		rig.Should(t, <-served)
		if s := ln.Stats(); s.Rejected != 1 || len(s.Failed) != 0 {
			t.Errorf("counted %+v", s)
		}
	}
	// Without messages there is no way to say why.
	ln := rig.Listen(t, iwarp.ListenConfig{})
	p, req := rig.Ask(t, ln, startKey(false))
	if err := req.Reject([]byte("why")); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("Reject with private data: %v", err)
	}
	c, err := req.RejectKeep(nil, 0, 0)
	rig.Must(t, err)
	wantGone(t, c)
	if b := p.WantFIN(); len(b) > 0 {
		t.Errorf("got %q", b)
	}
}

// wantGone expects a connection that is closed here, and no trap for who closes it again.
func wantGone(t *testing.T, c net.Conn) {
	t.Helper()
	if c == nil {
		t.Fatal("no connection")
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
	if _, err := io.WriteString(c, "x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	_ = c.Close()
}

// TestLateMarkers has a peer ask for markers only in the Start Key after its private data
// message, when the QP that is to send none has been accepted with.
//
// Proves V02.
func TestLateMarkers(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{Messages: true})
	p, req := rig.Ask(t, ln, []byte{0, 0})
	accepted := rig.DialInBackground(t, func() error {
		_, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{Stream: iwarp.StreamAttr{MarkersSend: off}}})
		return err
	})
	p.WantBytes([]byte{0, 0})
	p.Send(startKey(true))
	p.WantBytes(startKey(false))
	if b := p.WantFIN(); len(b) > 0 {
		t.Errorf("sent %q", b)
	}
	p.Conn.Close()
	if err := <-accepted; !errors.Is(err, iwarp.ErrMarkersRequired) {
		t.Error(err)
	}
	if err := req.Reject(nil); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Reject: %v", err)
	}
}
