package startup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// refusals are the ways in which a peer that does not know RFC 6581 refuses a
// revision 2 Request.
var refusals = []struct {
	name   string
	refuse func(*rig.Peer)
	text   string
	open   bool // it leaves the TCP connection open
}{
	{"FIN", func(p *rig.Peer) { p.Conn.Close() }, "closed the connection on a revision 2 Request", false},
	{"RST", func(p *rig.Peer) { _ = p.Link.Reset() }, "closed the connection on a revision 2 Request", false},
	{"reject of revision 1", func(p *rig.Peer) {
		f := rig.Reply(1)
		f.R = true
		p.Send(rig.Frame(f))
	}, "rejected a revision 2 Request with an unenhanced Reply", true},
	{"accept of revision 1", func(p *rig.Peer) { p.Send(rig.Frame(rig.Reply(1))) },
		"answered a revision 2 Request with an unenhanced Reply", true},
}

// TestFallback refuses revision 2 in every way that asks for revision 1, and then
// accepts that. We close the first connection if the peer has not, and log why there is
// another.
//
// Proves E13.
func TestFallback(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			ln := rig.ListenTCP(t)
			var log testrig.Buffer
			rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(slog.NewTextHandler(&log,
				&slog.HandlerOptions{Level: slog.LevelInfo}))})
			d := iwarp.Dialer{PD: rig.NewPD(t, rnic)}
			ini := &rig.End{T: t}
			dialed := ini.Dials(d, ln)
			first := rig.AcceptRequest(t, ln)
			c.refuse(first)
			p := rig.AcceptPeer(t, ln)
			if c.open {
				first.WantClosed()
			}
			if text := log.String(); !strings.Contains(text, "trying again with revision 1") ||
				!strings.Contains(text, "cause=") {
				t.Errorf("logged %s", text)
			}
			if f := p.WantFrame(mpa.KeyRequest); f.Rev() != 1 || f.S() {
				t.Errorf("the second Request is %v", f)
			}
			p.Send(rig.Frame(rig.Reply(1)))
			rig.Must(t, <-dialed)
			n := ini.Negotiated()
			if !n.FellBack || n.FallbackReason == nil || n.Revision != 1 || n.PeerToPeer ||
				n.Opener != mpa.RTRWrite || n.IRD != rig.ReadDepth {
				t.Errorf("negotiated %+v", n)
			}
			if s := p.Want(rdmap.OpWrite); len(s.Payload) > 0 { // which lets the peer send
				t.Errorf("got %v with %d bytes", s.Header, len(s.Payload))
			}
			if s := rnic.Stats().Startup; s.Fallbacks != 1 || s.Started != 2 || s.Established != 1 {
				t.Errorf("counted %+v", s)
			}
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello")})
			if s := p.Want(rdmap.OpSend); string(s.Payload) != "hello" {
				t.Errorf("got %q", s.Payload)
			}
		})
	}
}

// TestFallbackOpens has the connection of revision 1 keep what was asked for with revision 2: the peer may send
// first, after an RTR indication of a kind that was offered; or not, if the consumer wants no peer-to-peer
// connection. What cannot be kept is an error, and no second connection is opened for it.
//
// Proves E13.
func TestFallbackOpens(t *testing.T) {
	for _, c := range []struct {
		name  string
		offer mpa.Offer
		want  rdmap.Opcode // of our first FPDU, without any work posted
		sends bool         // there is one
	}{
		{"default", mpa.Offer{}, rdmap.OpWrite, true},
		{"Read", mpa.Offer{RTR: mpa.RTRRead | mpa.RTRSend}, rdmap.OpReadRequest, true},
		{"client and server", mpa.Offer{ClientServer: true}, 0, false},
		{"Send", mpa.Offer{RTR: mpa.RTRSend}, 0, false},
	} {
		ln := rig.ListenTCP(t)
		d := iwarp.Dialer{MPA: c.offer}
		ini := &rig.End{T: t}
		dialed := ini.Dials(d, ln)
		p := rig.AcceptRequest(t, ln)
		p.Conn.Close()
		if c.name == "Send" {
			if err := <-dialed; !errors.Is(err, errors.ErrUnsupported) || !rig.Contains(err, "only a Send is offered") {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		p = rig.AcceptRequest(t, ln)
		p.Send(rig.Frame(rig.Reply(1)))
		rig.Must(t, <-dialed)
		if n := ini.Negotiated(); (n.Opener != 0) != c.sends {
			t.Errorf("%s: negotiated %+v", c.name, n)
		}
		if c.sends {
			p.Want(c.want)
		}
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello")})
		p.Want(rdmap.OpSend) // and nothing else before it
		_ = ini.Abort()
	}
}

// TestFallbackRefused refuses the second attempt too: the error tells of both.
//
// Proves E13.
func TestFallbackRefused(t *testing.T) {
	for _, c := range refusals {
		ln := rig.ListenTCP(t)
		dialed := (&rig.End{T: t}).Dials(iwarp.Dialer{}, ln)
		p := rig.AcceptRequest(t, ln)
		c.refuse(p)
		p = rig.AcceptRequest(t, ln)
		p.Conn.Close()
		err := <-dialed
		want := fmt.Sprintf("iwarp: dial tcp %v: the responder %s; retried with revision 1: mpa: startup as Initiator: ", ln.Addr(), c.text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s...", c.name, err, want)
		}
		var s *mpa.StartupError
		if !errors.As(err, &s) || s.Failure != mpa.FailureClosed || s.Fallback {
			t.Errorf("%s: the last failure is %+v", c.name, s)
		}
	}
}

// TestNoFallback makes one attempt only where the consumer wants it so, or where
// the failure has nothing to do with the revision.
//
// Proves E13.
func TestNoFallback(t *testing.T) {
	for _, c := range []struct {
		name   string
		dialer iwarp.Dialer
		refuse func(*rig.Peer)
		want   mpa.Failure
	}{
		{"switched off", iwarp.Dialer{NoFallback: true}, func(p *rig.Peer) { p.Conn.Close() }, mpa.FailureClosed},
		{"revision 1 already", iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}},
			func(p *rig.Peer) { p.Conn.Close() }, mpa.FailureClosed},
		{"cut off in its Reply", iwarp.Dialer{}, func(p *rig.Peer) { p.Send([]byte(mpa.KeyReply)); p.Conn.Close() },
			mpa.FailureClosed},
		{"no MPA", iwarp.Dialer{}, func(p *rig.Peer) { p.Send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			mpa.FailureKey},
	} {
		ln := rig.ListenTCP(t)
		dialed := (&rig.End{T: t}).Dials(c.dialer, ln)
		p := rig.AcceptRequest(t, ln)
		c.refuse(p)
		err := <-dialed
		var s *mpa.StartupError
		if !errors.As(err, &s) || s.Failure != c.want || strings.Contains(err.Error(), "retried") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNobodyThere has TCP itself fail; the error names the address once.
func TestNobodyThere(t *testing.T) {
	ln := rig.ListenTCP(t)
	addr := ln.Addr().String()
	ln.Close()
	_, err := new(iwarp.Dialer).Dial(rig.Within(t), "tcp", addr)
	var op *iwarp.OpError
	if !errors.As(err, &op) || op.Op != "dial" || strings.Count(err.Error(), addr) != 1 {
		t.Errorf("got %v", err)
	}
}

// TestTimeoutEnds: a Dial that is over leaves nothing behind that waits for its Timeout.
func TestTimeoutEnds(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	var during context.Context
	d := iwarp.Dialer{Timeout: time.Hour, Net: net.Dialer{
		ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
			during = ctx
			return errors.New("enough")
		},
	}}
	if _, err := d.Dial(t.Context(), "tcp", ln.Addr().String()); !rig.Contains(err, "enough") {
		t.Error(err)
	}
	if !errors.Is(during.Err(), context.Canceled) {
		t.Errorf("the context: %v", during.Err())
	}
}

// TestFallbackDepths has the connection of revision 1 keep the depths that were offered with revision 2. Revision 1 has
// no words for them, so that the peer hears of them only by way of a preset that puts them into the private data, and
// then we hear of its own.
//
// Proves E13.
func TestFallbackDepths(t *testing.T) {
	none := mpa.NoNegotiation
	smb := &iwarp.Preset{SMBDirect: true}
	for _, c := range []struct {
		name     string
		dialer   iwarp.Dialer
		limits   iwarp.Limits
		answer   []byte // private data of the Reply
		ird, ord int
		told     string // by the Request of revision 1
	}{
		{name: "as asked for", dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 3, ORD: 2}}, ird: 3, ord: 2},
		{name: "the largest", dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: mpa.MaxDepth, ORD: mpa.MaxDepth}},
			ird: int(mpa.MaxDepth), ord: int(mpa.MaxDepth)},
		{name: "not asked for", ird: rig.ReadDepth, ord: rig.ReadDepth},
		{name: "left to the consumer", dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: none, ORD: none}},
			ird: rig.ReadDepth, ord: rig.ReadDepth},
		{name: "within the RNIC's limit", limits: iwarp.Limits{IRD: 4}, ird: 4, ord: rig.ReadDepth},
		{name: "no Reads", dialer: iwarp.Dialer{NoReads: true}},
		{
			name: "told in private data", dialer: iwarp.Dialer{Preset: smb,
				MPA: mpa.Offer{IRD: 6, ORD: 5, PrivateData: []byte("hello")}},
			told:   "\x00\x00\x00\x06\x00\x00\x00\x05hello",
			answer: ulpdata.SMBDirect{IRD: 2, ORD: 9}.Append(nil), ird: 6, ord: 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ln := rig.ListenTCP(t)
			d := c.dialer
			d.PD = rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Limits: c.limits}))
			ini := &rig.End{T: t}
			dialed := ini.Dials(d, ln)
			rig.AcceptRequest(t, ln).Conn.Close()
			p := rig.AcceptPeer(t, ln)
			if f := p.WantFrame(mpa.KeyRequest); f.Rev() != 1 || string(f.ULPData()) != c.told {
				t.Errorf("the second Request is %v", f)
			}
			p.Send(rig.Frame(rig.Reply(1, c.answer...)))
			rig.Must(t, <-dialed)
			if a := ini.Query(); a.IRD != c.ird || a.ORD != c.ord {
				t.Errorf("IRD %d and ORD %d, want %d and %d", a.IRD, a.ORD, c.ird, c.ord)
			}
			_ = ini.Abort()
		})
	}
}

// TestFallbackReads posts one Read more than the ORD that was offered with revision 2: it is sent when the first is
// answered. Of the peer's Reads the IRD is taken.
//
// Proves E13.
func TestFallbackReads(t *testing.T) {
	ln := rig.ListenTCP(t)
	ini := rig.NewEnd(t, iwarp.RNICConfig{})
	dialed := ini.Dials(iwarp.Dialer{PD: ini.PD, MPA: mpa.Offer{IRD: 3, ORD: 2}}, ln)
	rig.AcceptRequest(t, ln).Conn.Close()
	p := rig.AcceptRequest(t, ln)
	p.Send(rig.Frame(rig.Reply(1)))
	rig.Must(t, <-dialed)
	p.Want(rdmap.OpWrite)
	sink := ini.MR(8, iwarp.LocalWrite)
	for id := range uint64(3) {
		ini.MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)},
			Remote: iwarp.Remote{STag: 5}})
	}
	ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("after them")})
	first, err := rdmap.ParseReadRequest(p.Want(rdmap.OpReadRequest).Payload)
	rig.Must(t, err)
	p.Want(rdmap.OpReadRequest)
	src := ini.Filled(8, 1, iwarp.RemoteRead)
	for msn := range uint32(3) {
		p.Send(p.ReadRequest(msn+1, rdmap.ReadRequest{SinkSTag: 7, Size: 8, SrcSTag: src.STag(),
			SrcTO: src.Remote(0).TO}))
	}
	for range 3 { // before a third Read of ours
		p.Want(rdmap.OpReadResponse)
	}
	h := rdmap.OpReadResponse.Header(1)
	h.STag, h.TO, h.Last = first.SinkSTag, first.SinkTO, true
	p.Send(p.FPDU(h, make([]byte, 8)))
	p.Want(rdmap.OpReadRequest)
	p.Want(rdmap.OpSend)
	_ = ini.Abort()
}

// TestFallbackTooLong has a preset put depths in front of private data that leave no room for them in revision 1: what
// cannot be kept is an error, and no second connection is opened.
//
// Proves E13.
func TestFallbackTooLong(t *testing.T) {
	ln := rig.ListenTCP(t)
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	d := iwarp.Dialer{PD: rig.NewPD(t, rnic), Preset: &iwarp.Preset{SMBDirect: true},
		MPA: mpa.Offer{PrivateData: make([]byte, 508)}}
	dialed := (&rig.End{T: t}).Dials(d, ln)
	rig.AcceptRequest(t, ln).Conn.Close()
	if err := <-dialed; !errors.Is(err, mpa.ErrOffer) || !rig.Contains(err, "retried with revision 1: ") {
		t.Error(err)
	}
	if s := rnic.Stats().Startup; s.Started != 1 || s.Fallbacks != 0 {
		t.Errorf("counted %+v", s)
	}
}
