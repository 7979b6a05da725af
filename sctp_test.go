package iwarp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// overSCTP is a setup over SCTP in UDP.
func overSCTP() setup {
	return setup{over: &transport{name: "SCTP", network: "sctp4", host: "127.0.0.1", sctp: true}}
}

// TestSCTPNegotiated: private data, IRD and ORD, and who may send first. [C04]
//
// Proves C01, C02, C04, E03, E04: the Responder sends first.
func TestSCTPNegotiated(t *testing.T) {
	t.Parallel()
	s := overSCTP()
	var logged slog.Record
	s.Dialer = iwarp.Dialer{PD: newPD(t, newRNIC(t, iwarp.RNICConfig{Logger: slog.New(handler(func(r slog.Record) {
		if r.Message == "iwarp: connection established" {
			logged = r
		}
	}))})), MPA: mpa.Offer{IRD: 3, ORD: 9, PrivateData: []byte("hi")}}
	s.accept = iwarp.AcceptConfig{MPA: mpa.Answer{IRD: 4, MaxIRD: 7, ORD: 2, PrivateData: []byte("yo")}}
	ini, res := s.connect(t)
	i, r := ini.Negotiated(), res.Negotiated()
	if i.IRD != 3 || i.ORD != 7 || r.IRD != 7 || r.ORD != 2 || string(i.PrivateData) != "yo" || string(r.PrivateData) != "hi" || i.MULPDU != 1426 || i.CRC || i.RTT == 0 {
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
	buf, src := ini.mr(10, iwarp.LocalWrite), res.filled(10, 1, 0)
	ini.postRecv(1, buf.Slice(0, 10))
	res.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, 10)}})
	ini.wantReceived(1, iwarp.StatusSuccess)
	same(t, "Send", buf, src)
	finish(t, ini, res)
}

// wantNoMPA expects nothing of MPA in the forms in which a program tells what was agreed on.
func wantNoMPA(t *testing.T, n iwarp.Negotiated) {
	t.Helper()
	text, err := json.Marshal(n)
	must(t, err)
	if want := fmt.Sprintf("Initiator, RFC 6581, IRD 3, ORD 7, peer-to-peer with RTR write, MULPDU %d", n.MULPDU); n.String() != want {
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
	t.Run("too few Reads", func(t *testing.T) {
		s := overSCTP()
		s.Dialer = iwarp.Dialer{MPA: mpa.Offer{IRD: 1, ORD: 1, MaxIRD: 1}}
		s.accept = iwarp.AcceptConfig{MPA: mpa.Answer{IRD: 1, ORD: 1, RTR: mpa.RTRSend}}
		_, res, iniErr, resErr := s.meet(t)
		var n *iwarp.NegotiationError
		if !errors.As(iniErr, &n) || n.Code != rdmap.CodeMPANoMatchingRTR {
			t.Errorf("the Initiator: %v", iniErr)
		}
		must(t, resErr)
		<-res.Done()
		var term *iwarp.TerminateError
		if err := res.Err(); !errors.As(err, &term) || !term.Remote || term.Code != rdmap.CodeMPANoMatchingRTR {
			t.Errorf("the Responder: %v", err)
		}
	})
	t.Run("not verified", func(t *testing.T) {
		s, no := overSCTP(), errors.New("not this one")
		s.Dialer = iwarp.Dialer{Verify: func(mpa.Negotiated) error { return no }}
		_, res, iniErr, resErr := s.meet(t)
		var v *iwarp.VerifyError
		if !errors.As(iniErr, &v) || !errors.Is(iniErr, no) || v.Conn.Close() == nil {
			t.Errorf("the Initiator: %v", iniErr)
		}
		must(t, resErr)
		<-res.Done()
		if err := res.Err(); !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("the Responder: %v", err)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
		must(t, err)
		defer silent.Close()
		d := iwarp.Dialer{Timeout: 50 * time.Millisecond}
		if _, err := d.Dial(within(t), "sctp", silent.LocalAddr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	for network, addr := range map[string]string{"sctp": "127.0.0.1", "sctp4": "[::1]:1", "sctp5": "127.0.0.1:1"} {
		if _, err := iwarp.Dial(within(t), network, addr); err == nil {
			t.Errorf("%s %s: connected", network, addr)
		}
		if _, err := iwarp.Listen(within(t), network, addr, iwarp.ListenConfig{}); err == nil {
			t.Errorf("%s %s: listening", network, addr)
		}
	}
}

// rejectedOverSCTP dials a Listener whose program rejects everything.
func rejectedOverSCTP(t *testing.T, d iwarp.Dialer) (r *iwarp.RejectError) {
	t.Helper()
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{RequestTimeout: -1})
	must(t, err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(within(t))
		must(t, err)
		c, err := req.RejectDepths([]byte("no"), 1, 2)
		must(t, err)
		if _, err := c.Read(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection is open: %v", err)
		}
	}()
	if _, err = d.Dial(within(t), "sctp", ln.Addr().String()); !errors.As(err, &r) || string(r.PrivateData) != "no" || strings.Count(err.Error(), "iwarp:") != 1 {
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
			ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
			ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: -1})
			must(t, err)
			accepted := res.takes(ln, iwarp.AcceptConfig{})
			d := iwarp.Dialer{PD: ini.pd, ShareAssociation: share, Timeout: time.Minute}
			ini.QP, err = d.Dial(within(t), "sctp", ln.Addr().String())
			must(t, err)
			must(t, <-accepted)
			must(t, ln.Close())
			works(t, ini, res)
			var refusal *sctp.Refusal
			_, err = d.Dial(within(t), "sctp", ln.Addr().String())
			if byProvider := errors.As(err, &refusal) && refusal.Provider; byProvider != share || !share && !errors.Is(err, carrier.ErrRefused) {
				t.Errorf("one more: %v", err)
			}
			finish(t, ini, res)
		})
	}
}

// A sctpPeer is scripted: it has an association with a Listener of ours, and says what it likes in it.
type sctpPeer struct {
	*testing.T
	*sctpudp.Conn
	heard chan sctp.Message
	lost  chan error
}

func newSCTPPeer(t *testing.T, ln *iwarp.Listener) *sctpPeer {
	t.Helper()
	return newSCTPPeerFrom(t, ln, net.IPv4(127, 0, 0, 1))
}

func newSCTPPeerFrom(t *testing.T, ln *iwarp.Listener, ip net.IP) *sctpPeer {
	t.Helper()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: ip})
	must(t, err)
	e := sctpudp.New(pc, false, sctpudp.Config{})
	t.Cleanup(func() { e.Close() })
	c, err := e.Dial(within(t), netip.MustParseAddrPort(ln.Addr().String()))
	must(t, err)
	p := &sctpPeer{t, c, make(chan sctp.Message, 100), make(chan error, 1)}
	go c.Run(func(m sctp.Message) { p.heard <- m }, func(uint16, uint64) {}, func(err error) { p.lost <- err })
	return p
}

func (p *sctpPeer) says(ppid uint32, data string) {
	p.Helper()
	must(p.T, p.Send(sctp.Message{PPID: ppid, Data: []byte(data)}))
}

func (p *sctpPeer) hears() sctp.Message {
	p.Helper()
	select {
	case m := <-p.heard:
		return m
	case <-time.After(soon):
		p.Fatal("nothing has come")
		panic("")
	}
}

// TestSCTPViolations has a scripted peer break each rule in an open session: our side ends with "local catastrophic" and
// the rule, tells it to the peer by a Terminate of RDMAP and one of the session, and other sessions go on.
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
			res := newEnd(t, iwarp.RNICConfig{})
			ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: -1})
			must(t, err)
			defer ln.Close()
			accepted := res.takes(ln, iwarp.AcceptConfig{})
			p := newSCTPPeer(t, ln)
			p.says(17, "\x00\x00\x00\x01")
			if m := p.hears(); string(m.Data) != "\x00\x00\x00\x02" {
				t.Fatalf("answered % x", m.Data)
			}
			must(t, <-accepted)
			other := p.opens(2, ln)
			p.says(c.ppid, c.data)
			var v *sctp.Violation
			var term *iwarp.TerminateError
			<-p.ended(res)
			if err := res.Err(); !errors.As(err, &term) || term.Remote || term.Code != rdmap.CodeMPALocalCatastrophic || !errors.As(err, &v) || v.Rule != c.want {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
			p.wantTerminated()
			must(t, other.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("going on")}))
			if m := p.hears(); m.Stream != 2 || m.PPID != 16 || !strings.HasSuffix(string(m.Data), "going on") {
				t.Errorf("of the other session came %+v", m)
			}
			other.Abort()
		})
	}
}

// opens opens a session on another stream, and returns our QP.
func (p *sctpPeer) opens(stream uint16, ln *iwarp.Listener) *iwarp.QP {
	p.Helper()
	must(p.T, p.Send(sctp.Message{Stream: stream, PPID: 17, Data: []byte("\x00\x00\x00\x01")}))
	req, err := ln.Accept(within(p.T))
	must(p.T, err)
	qp, err := req.Accept(within(p.T), iwarp.AcceptConfig{})
	must(p.T, err)
	if m := p.hears(); m.Stream != stream || string(m.Data) != "\x00\x00\x00\x02" {
		p.Fatalf("answered %+v", m)
	}
	return qp
}

// ended has the peer do its part of the end as soon as it hears of it.
func (p *sctpPeer) ended(res *end) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for res.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	return done
}

// wantTerminated expects a Terminate of RDMAP and one of the session, in either order.
func (p *sctpPeer) wantTerminated() {
	p.Helper()
	got := map[uint32]string{}
	for range 2 {
		m := p.hears()
		got[m.PPID] = string(m.Data)
	}
	if got[17] != "\x00\x02\x00\x04" || len(got[16]) < 20 || got[16][:2] != "\x00\x01" || fmt.Sprintf("%x", got[16][20:22]) != "2005" {
		p.Errorf("told % x", got)
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
		ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{RequestTimeout: -1})
		must(t, err)
		p := newSCTPPeer(t, ln)
		p.says(17, "\x00\x00\x00\x01")
		req, err := ln.Accept(within(t))
		must(t, err)
		p.says(c.ppid, c.data)
		if m := p.hears(); string(m.Data) != "\x00\x00\x00\x04" {
			t.Errorf("%s: answered % x", name, m.Data)
		}
		if _, err := req.Accept(within(t), iwarp.AcceptConfig{}); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("%s: %v", name, err)
		}
		if err := req.Close(); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("%s: closed: %v", name, err)
		}
		must(t, ln.Close())
	}
}

// TestSCTPUnused: an association without a session has as long as a connection without a Request, and gives way to
// others.
//
// Proves Z04.
func TestSCTPUnused(t *testing.T) {
	t.Parallel()
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{RequestTimeout: 100 * time.Millisecond})
	must(t, err)
	defer ln.Close()
	if err := <-newSCTPPeer(t, ln).lost; !errors.Is(err, carrier.ErrShutdown) {
		t.Errorf("lost: %v", err)
	}
	full, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{MaxHalfOpen: 1, RequestTimeout: -1})
	must(t, err)
	defer full.Close()
	first := newSCTPPeer(t, full)
	newSCTPPeer(t, full)
	if err := <-first.lost; !errors.Is(err, carrier.ErrAborted) {
		t.Errorf("lost: %v", err)
	}
}
