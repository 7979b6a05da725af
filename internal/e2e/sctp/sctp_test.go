package sctp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// overSCTP is a setup over SCTP in UDP.
func overSCTP() rig.Setup {
	return rig.Setup{Over: &rig.Transport{Name: "SCTP", Network: "sctp4", Host: "127.0.0.1", Sctp: true}}
}

// TestSCTPNegotiated: private data, IRD and ORD, and who may send first. [C04]
//
// Proves C01, C02, C04, E03, E04: the Responder sends first.
func TestSCTPNegotiated(t *testing.T) {
	t.Parallel()
	s := overSCTP()
	var logged slog.Record
	s.Dialer = iwarp.Dialer{PD: rig.NewPD(t, rig.NewRNIC(t,
		iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(func(r slog.Record) {
			if r.Message == "iwarp: connection established" {
				logged = r
			}
		}))})), MPA: mpa.Offer{IRD: 3, ORD: 9, PrivateData: []byte("hi")}}
	s.Accept = iwarp.AcceptConfig{MPA: mpa.Answer{IRD: 4, MaxIRD: 7, ORD: 2, PrivateData: []byte("yo")}}
	ini, res := s.Connect(t)
	i, r := ini.Negotiated(), res.Negotiated()
	if i.IRD != 3 || i.ORD != 7 || r.IRD != 7 || r.ORD != 2 || string(i.PrivateData) != "yo" ||
		string(r.PrivateData) != "hi" || i.MULPDU != 1426 || i.CRC || i.RTT == 0 {
		t.Errorf("the Initiator has %+v, the Responder %+v", i, r)
	}
	wantNoMPA(t, i)
	logged.Attrs(func(a slog.Attr) bool {
		if strings.HasPrefix(a.Key, "markers") || a.Key == "crc" || a.Key == "revision" || a.Key == "emss" {
			t.Errorf("logged %v", a)
		}
		return true
	})
	if logged.NumAttrs() < 8 {
		t.Errorf("logged %v", logged)
	}
	buf, src := ini.MR(10, iwarp.LocalWrite), res.Filled(10, 1, 0)
	ini.MustPostRecv(1, buf.Slice(0, 10))
	res.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, 10)}})
	ini.WantReceived(1, iwarp.StatusSuccess)
	rig.Same(t, "Send", buf, src)
	rig.Finish(t, ini, res)
}

// wantNoMPA expects nothing of MPA in the forms in which a program tells what was agreed on.
func wantNoMPA(t *testing.T, n iwarp.Negotiated) {
	t.Helper()
	text, err := json.Marshal(n)
	rig.Must(t, err)
	if want := fmt.Sprintf("Initiator, RFC 6581, IRD 3, ORD 7, peer-to-peer with RTR write, MULPDU %d",
		n.MULPDU); n.String() != want {
		t.Errorf("got %q, want %q", n, want)
	}
	for _, mpas := range []string{"Revision", "Markers", "CRC", "EMSS"} {
		if strings.Contains(string(text), mpas) || !strings.Contains(string(text), `"IRD":3`) {
			t.Errorf("%s in %s", mpas, text)
		}
	}
}

// TestSCTPRefused: each way in which there is no session, and what both sides are told.
//
// Proves C03, E05, E10.
func TestSCTPRefused(t *testing.T) {
	t.Parallel()
	t.Run("rejected", func(t *testing.T) {
		r := rejectedOverSCTP(t, iwarp.Dialer{})
		if r.PeerIRD != 1 || r.PeerORD != 2 || !r.Enhanced || r.Dialect != mpa.DialectRFC6581 || r.Conn.Close() == nil {
			t.Errorf("got %+v", r.RejectError)
		}
	})
	t.Run("rejected without RFC 6581", func(t *testing.T) {
		r := rejectedOverSCTP(t, iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}})
		if r.Enhanced || r.Dialect != mpa.DialectRFC5044 {
			t.Errorf("got %+v", r.RejectError)
		}
	})
	t.Run("no common RTR", func(t *testing.T) {
		s := overSCTP()
		s.Dialer = iwarp.Dialer{MPA: mpa.Offer{RTR: mpa.RTRWrite | mpa.RTRRead}}
		s.Accept = iwarp.AcceptConfig{MPA: mpa.Answer{RTR: mpa.RTRSend}}
		_, res, iniErr, resErr := s.Meet(t)
		var n *iwarp.NegotiationError
		if !errors.As(iniErr, &n) || n.Code != rdmap.CodeMPANoMatchingRTR {
			t.Errorf("the Initiator: %v", iniErr)
		}
		rig.Must(t, resErr)
		<-res.Done()
		var term *iwarp.TerminateError
		if err := res.Err(); !errors.As(err, &term) || !term.Remote || term.Code != rdmap.CodeMPANoMatchingRTR {
			t.Errorf("the Responder: %v", err)
		}
	})
	t.Run("not verified", func(t *testing.T) {
		s, no := overSCTP(), errors.New("not this one")
		s.Dialer = iwarp.Dialer{Verify: func(mpa.Negotiated) error { return no }}
		_, res, iniErr, resErr := s.Meet(t)
		var v *iwarp.VerifyError
		if !errors.As(iniErr, &v) || !errors.Is(iniErr, no) || v.Conn.Close() == nil {
			t.Errorf("the Initiator: %v", iniErr)
		}
		rig.Must(t, resErr)
		<-res.Done()
		if err := res.Err(); !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("the Responder: %v", err)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
		rig.Must(t, err)
		defer silent.Close()
		d := iwarp.Dialer{Network: new(iwarpsctp.Network), Timeout: 50 * time.Millisecond}
		if _, err := d.Dial(rig.Within(t), "sctp", silent.LocalAddr().String()); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	for network, addr := range map[string]string{"sctp": "127.0.0.1", "sctp4": "[::1]:1", "sctp5": "127.0.0.1:1"} {
		over := new(iwarpsctp.Network)
		if _, err := (&iwarp.Dialer{Network: over}).Dial(rig.Within(t), network, addr); err == nil {
			t.Errorf("%s %s: connected", network, addr)
		}
		if _, err := (&iwarp.ListenConfig{Network: over}).Listen(rig.Within(t), network, addr); err == nil {
			t.Errorf("%s %s: listening", network, addr)
		}
	}
}

// rejectedOverSCTP dials a Listener whose program rejects everything.
func rejectedOverSCTP(t *testing.T, d iwarp.Dialer) (r *iwarp.RejectError) {
	t.Helper()
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(rig.Within(t))
		rig.Must(t, err)
		c, err := req.RejectKeep([]byte("no"), 1, 2)
		rig.Must(t, err)
		if _, err := c.Read(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection is open: %v", err)
		}
	}()
	d.Network = new(iwarpsctp.Network)
	if _, err = d.Dial(rig.Within(t), "sctp", ln.Addr().String()); !errors.As(err, &r) ||
		string(r.PrivateData) != "no" || strings.Count(err.Error(), "iwarp:") != 1 {
		t.Fatalf("got %v", err)
	}
	return r
}

// TestSCTPListenerClosed: connections outlive the Listener that they came by, with which they share a socket; nobody
// gets in any more, be it by an association of its own or in that of a connection, where the provider refuses it.
//
// Proves C07.
func TestSCTPListenerClosed(t *testing.T) {
	for _, share := range []bool{false, true} {
		t.Run(fmt.Sprint("share ", share), func(t *testing.T) {
			t.Parallel()
			ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
			ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: -1}).Listen(
				rig.Within(t), "sctp4", "127.0.0.1:0")
			rig.Must(t, err)
			accepted := res.Takes(ln, iwarp.AcceptConfig{})
			d := iwarp.Dialer{PD: ini.PD, Network: &iwarpsctp.Network{ShareAssociations: share}, Timeout: time.Minute}
			ini.QP, err = d.Dial(rig.Within(t), "sctp", ln.Addr().String())
			rig.Must(t, err)
			rig.Must(t, <-accepted)
			rig.Must(t, ln.Close())
			rig.Works(t, ini, res)
			var refusal *sctp.Refusal
			_, err = d.Dial(rig.Within(t), "sctp", ln.Addr().String())
			if byProvider := errors.As(err, &refusal) && refusal.Provider; byProvider != share || !share &&
				!errors.Is(err, lowerlayer.ErrRefused) {
				t.Errorf("one more: %v", err)
			}
			rig.Finish(t, ini, res)
		})
	}
}

// TestSCTPViolations has a scripted peer break each rule in an open session: our side ends with "local catastrophic"
// and the rule, tells it to the peer by a Terminate of RDMAP and one of the session, and other sessions go on.
//
// Proves C04.
func TestSCTPViolations(t *testing.T) {
	for name, c := range map[string]struct {
		ppid uint32
		data string
		want sctp.Rule
	}{
		"PPID":                {18, "\x00\x01text", sctp.RulePPID},
		"too short":           {16, "\x00", sctp.RuleShort},
		"no function":         {17, "\x00\x01", sctp.RuleShort},
		"unknown function":    {17, "\x00\x01\x00\x08", sctp.RuleFunction},
		"Terminate with data": {17, "\x00\x01\x00\x04no", sctp.RuleTerminateData},
		"private data":        {17, "\x00\x01\x00\x01" + string(make([]byte, 513)), sctp.RulePrivateData},
		"stream in use":       {17, "\x00\x01\x00\x01", sctp.RuleSequence},
		"Accept":              {17, "\x00\x01\x00\x02", sctp.RuleSequence},
		"DDP-SSN again":       {17, "\x00\x00\x00\x04", sctp.RuleSSN},
		"DDP-SSN too far":     {16, "\x80\x01far", sctp.RuleSSN},
	} {
		t.Run(name, func(t *testing.T) {
			res := rig.NewEnd(t, iwarp.RNICConfig{})
			ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: -1}).Listen(
				rig.Within(t), "sctp4", "127.0.0.1:0")
			rig.Must(t, err)
			defer ln.Close()
			accepted := res.Takes(ln, iwarp.AcceptConfig{})
			p := rig.NewSCTPPeer(t, ln)
			p.Says(17, "\x00\x00\x00\x01")
			if m := p.Hears(); string(m.Data) != "\x00\x00\x00\x02" {
				t.Fatalf("answered % x", m.Data)
			}
			rig.Must(t, <-accepted)
			other := p.Opens(2, ln)
			p.Says(c.ppid, c.data)
			var v *sctp.Violation
			var term *iwarp.TerminateError
			<-p.Ended(res)
			if err := res.Err(); !errors.As(err, &term) || term.Remote || term.Code != rdmap.CodeMPALocalCatastrophic ||
				!errors.As(err, &v) || v.Rule != c.want {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
			p.WantTerminated()
			rig.Must(t, other.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("going on")}))
			if m := p.Hears(); m.Stream != 2 || m.PPID != 16 || !strings.HasSuffix(string(m.Data), "going on") {
				t.Errorf("of the other session came %+v", m)
			}
			other.Abort()
		})
	}
}

// TestSCTPBeforeAccept: a peer that does not wait for the answer, or takes its request back, leaves nothing behind for
// the consumer.
//
// Proves C04.
func TestSCTPBeforeAccept(t *testing.T) {
	for name, c := range map[string]struct {
		ppid uint32
		data string
	}{
		"segment":   {16, "\x00\x01early"},
		"Terminate": {17, "\x00\x01\x00\x04"},
	} {
		ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RequestTimeout: -1}).Listen(
			rig.Within(t), "sctp4", "127.0.0.1:0")
		rig.Must(t, err)
		p := rig.NewSCTPPeer(t, ln)
		p.Says(17, "\x00\x00\x00\x01")
		req, err := ln.Accept(rig.Within(t))
		rig.Must(t, err)
		p.Says(c.ppid, c.data)
		if m := p.Hears(); string(m.Data) != "\x00\x00\x00\x04" {
			t.Errorf("%s: answered % x", name, m.Data)
		}
		if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{}); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("%s: %v", name, err)
		}
		if err := req.Close(); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("%s: closed: %v", name, err)
		}
		rig.Must(t, ln.Close())
	}
}

// TestSCTPUnused: an association without a session has as long as a connection without a Request, and gives way to
// others.
//
// Proves Z04.
func TestSCTPUnused(t *testing.T) {
	t.Parallel()
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RequestTimeout: 100 * time.Millisecond}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	if err := <-rig.NewSCTPPeer(t, ln).Lost; !errors.Is(err, lowerlayer.ErrShutdown) {
		t.Errorf("lost: %v", err)
	}
	full, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), MaxHalfOpen: 1, RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer full.Close()
	first := rig.NewSCTPPeer(t, full)
	rig.NewSCTPPeer(t, full)
	if err := <-first.Lost; !errors.Is(err, lowerlayer.ErrAborted) {
		t.Errorf("lost: %v", err)
	}
}
