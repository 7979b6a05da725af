package startup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// rnics are the columns and rows of the figures of CARRIER: kinds of RNIC with their
// marker receive preferences.
var rnics = []iwarp.RNICConfig{
	{Kind: rdmac},
	{Kind: nonPermissive},
	{Kind: nonPermissive, Markers: true},
	{Kind: permissive},
	{Kind: permissive, Markers: true},
}

// cell returns what figures 2, 3 and 4 of CARRIER have for an initiator and a responder:
// the version, and the markers in the receive direction of each, or "close". A
// permissive responder always answers an RDMAC initiator with M=1.
func cell(t *testing.T, ini, res iwarp.RNICConfig) string {
	i, r := matrix.RNIC{Kind: ini.Kind, Markers: ini.Markers || ini.Kind == rdmac},
		matrix.RNIC{Kind: res.Kind, Markers: res.Markers || res.Kind == rdmac}
	for _, f := range matrix.Figures {
		line := slices.IndexFunc(f.Rows, func(row matrix.FigureRow) bool { return row.RNIC == i })
		if column := slices.Index(f.Columns, r); line >= 0 && column >= 0 {
			return strings.Replace(f.Rows[line].Cells[column], "N/A", "V=0 M=1/1", 1)
		}
	}
	t.Fatalf("no figure has %v and %v", i, r)
	return ""
}

// TestKinds has RNICs of all kinds meet, as Dialer and Listener or on a connection that
// is there already, by revision 1 and by revision 2 with the fallback.
//
// Proves N01, N02, N03, N05, N06: what comes of it on both sides, with bytes that go
// over it, or the errors on both sides, which name the revisions.
func TestKinds(t *testing.T) {
	for _, ini := range rnics {
		for _, res := range rnics {
			for _, dialect := range []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581} {
				if ini.Kind == rdmac {
					dialect = 0
				}
				want := cell(t, ini, res)
				t.Run(fmt.Sprintf("%v %t to %v %t, %v",
					ini.Kind, ini.Markers, res.Kind, res.Markers, dialect), func(t *testing.T) {
					of := func(t *testing.T) rig.Setup {
						return rig.Setup{
							Dialer: iwarp.Dialer{PD: rig.NewPD(t, rig.NewRNIC(t, ini)),
								MPA: mpa.Offer{Dialect: dialect}},
							Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rig.NewRNIC(t, res))},
						}
					}
					switch {
					case want == "close":
						wantClose(t, of)
					case ini.Kind == permissive && res.Kind == rdmac && dialect == mpa.DialectRFC6581:
						fallBack(of(t), t)
					default:
						a, b := of(t).Connect(t)
						wantCell(t, a, b, want)
					}
				})
			}
		}
	}
}

// wantCell compares a connection with a cell.
func wantCell(t *testing.T, ini, res *rig.End, want string) {
	t.Helper()
	rig.Works(t, ini, res)
	i, r := ini.Negotiated(), res.Negotiated()
	bit := map[bool]int{true: 1}
	for _, v := range []uint8{i.DDPVersion, i.RDMAPVersion, r.DDPVersion, r.RDMAPVersion} {
		if got := fmt.Sprintf("V=%d M=%d/%d", v, bit[i.MarkersReceive], bit[r.MarkersReceive]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if i.MarkersReceive != r.MarkersSend || i.MarkersSend != r.MarkersReceive || i.CRC != r.CRC {
		t.Errorf("the Initiator has %+v, the Responder %+v", i, r)
	}
	if v := ini.Query().Stream.Version; v != res.Query().Stream.Version || v.String() != want[len("V="):len("V=")+1] {
		t.Errorf("the consumers are told of versions %v and %v, want %s", v, res.Query().Stream.Version, want)
	}
	rig.Finish(t, ini, res)
}

// wantClose has two meet that cannot have a connection, over TCP and over a pipe.
func wantClose(t *testing.T, of func(*testing.T) rig.Setup) {
	t.Helper()
	s := of(t)
	s.Delay = true
	parts(s, t)
	synctest.Test(t, func(t *testing.T) {
		s := of(t)
		s.Pipe = true
		parts(s, t)
	})
}

// part checks both sides of it.
func parts(s rig.Setup, t *testing.T) {
	t.Helper()
	ini, res, iniErr, resErr := s.Meet(t)
	if res.QP != nil { // an RDMAC Responder does not know before its peer has left
		resErr = res.WantEnd()
		if ev := res.WantEvent(iwarp.EventConnectionLost); ev.Err == nil || ev.Err.Error() != resErr.Error() {
			t.Errorf("event %v", ev)
		}
	}
	for _, err := range []error{iniErr, resErr} {
		other := rig.Contains(err, "revision 1") || rig.Contains(err, "revision 2") ||
			rig.Contains(err, "revisions 1 and 2")
		if !rig.Contains(err, "revision 0") || !other || !rig.Contains(err, "permissive") {
			t.Errorf("the revisions are not named: %v", err)
		}
	}
	if ini.QP != nil {
		t.Error("the Initiator has a QP")
	}
}

// fallBack dials an RDMAC RNIC with revision 2: its Listener sees two connections.
func fallBack(s rig.Setup, t *testing.T) {
	t.Helper()
	ln := rig.Listen(t, iwarp.ListenConfig{PD: s.Accept.PD})
	res := &rig.End{T: t, RNIC: s.Accept.PD.RNIC(), PD: s.Accept.PD}
	served := rig.DialInBackground(t, func() error {
		for range 2 {
			req, err := ln.Accept(rig.Within(t))
			if err == nil {
				res.QP, err = req.Accept(rig.Within(t), s.Accept)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	ini := &rig.End{T: t, RNIC: s.PD.RNIC(), PD: s.PD}
	rig.Must(t, <-ini.Dials(s.Dialer, ln))
	rig.Must(t, <-served)
	n := ini.Negotiated()
	if !n.FellBack || n.Revision != 1 || n.PeerRevision != 0 || n.Dialect != mpa.DialectRevision0 ||
		!rig.Contains(n.FallbackReason, "revision 0") {
		t.Errorf("negotiated %+v", n)
	}
	wantCell(t, ini, res, "V=0 M=1/1")
}

// TestRDMACDeserted has the peer of an RDMAC Responder leave on its Reply, in order or
// not. The error names the revisions; a peer of the same revision may leave without one.
//
// Proves N03, N04, Q16.
func TestRDMACDeserted(t *testing.T) {
	for _, c := range []struct {
		name    string
		request mpa.StartupFields
		reset   bool
		work    bool
		want    []string // in the error
	}{
		{"FIN", rig.Request(1), false, false, []string{"before its first FPDU",
			"of revision 1 and ours of revision 0", "non-permissive"}},
		{"FIN, with work posted", rig.Request(1), false, true,
			[]string{"before its first FPDU", "of revision 1 and ours of revision 0"}},
		{"RST", rig.Request(1), true, false, []string{"of revision 1 and ours of revision 0"}},
		{"revision 2", rig.Request(2), false, false, []string{"of revision 2 and ours of revision 0"}},
		{"an RDMAC RNIC", revision0(mpa.KeyRequest), false, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := rig.NewEnd(t, iwarp.RNICConfig{Kind: rdmac})
			p := acceptsFrom(res, t, c.request, iwarp.AcceptConfig{})
			if c.work {
				res.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("never sent")})
			}
			if c.reset {
				_ = p.Link.Reset()
			} else {
				_ = p.Link.CloseWrite()
				if b := p.WantFIN(); len(b) > 0 {
					t.Errorf("sent %q", b)
				}
			}
			err := res.WantEnd()
			if len(c.want) == 0 {
				rig.Should(t, err)
				return
			}
			if !errors.Is(err, iwarp.ErrConnectionLost) || res.State() != iwarp.StateError {
				t.Errorf("%v, in state %v", err, res.State())
			}
			for _, text := range c.want {
				if !rig.Contains(err, text) {
					t.Errorf("got %q, want %q in it", err, text)
				}
			}
			if ev := res.WantEvent(iwarp.EventConnectionLost); ev.QP != res.QP || ev.Err.Error() != err.Error() {
				t.Errorf("event %v", ev)
			}
		})
	}
}

// accepts has a Listener accept a peer's Request, and returns the peer, which has read
// the Reply.
func acceptsFrom(e *rig.End, t *testing.T, f mpa.StartupFields, cfg iwarp.AcceptConfig) *rig.Peer {
	t.Helper()
	ln := rig.Listen(t, iwarp.ListenConfig{PD: e.PD})
	p := rig.DialPeer(t, ln.Addr())
	p.Send(rig.Frame(f))
	req, err := ln.Accept(rig.Within(t))
	if err == nil {
		e.QP, err = req.Accept(rig.Within(t), cfg)
	}
	rig.Must(t, err)
	p.WantFrame(mpa.KeyReply)
	return p
}

// TestPermissiveToRDMAC plays an RDMAC RNIC to a permissive one, in both roles: headers
// of version 0, with markers and CRCs both ways, whatever its bits say.
//
// Proves N05, N06, N02.
func TestPermissiveToRDMAC(t *testing.T) {
	for _, bits := range []bool{true, false} {
		f := revision0(mpa.KeyRequest, 'p', 'd')
		f.M, f.C = bits, bits
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD})
		p, req := rig.Ask(t, ln, rig.Frame(f))
		if req.MPA().Revision != 0 || req.MPA().Dialect != mpa.DialectRevision0 || string(req.PrivateData()) != "pd" {
			t.Errorf("the Request is %+v", req.MPA())
		}
		if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{MPA: mpa.Answer{NoCRC: true},
			Prepare: res.TwoReceives}); err != nil {
			t.Fatal(err)
		}
		if g := p.WantFrame(mpa.KeyReply); g.Rev() != 0 || !g.M() || !g.C() {
			t.Errorf("answered %v", g)
		}
		p.BecomeRDMAC()
		p.Send(p.Message(rdmap.OpSend, 1, rig.Pattern(60, 0)))
		res.WantReceived(0, iwarp.StatusSuccess)
		res.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello"), Unsignaled: true})
		if s := p.Want(rdmap.OpSend); string(s.Payload) != "hello" {
			t.Errorf("got %q", s.Payload)
		}
		p.Version = 1 // and now it mixes them
		p.Send(p.Message(rdmap.OpSend, 2, nil))
		p.Version = 0
		p.WantTerminate(rdmap.Code(0x1206))
	}
	ln := rig.ListenTCP(t)
	ini := rig.NewEnd(t, iwarp.RNICConfig{})
	d := iwarp.Dialer{PD: ini.PD, MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}, Prepare: ini.TwoReceives}
	dialed := (&rig.End{T: t}).Dials(d, ln)
	p := rig.AcceptRequest(t, ln)
	p.Send(rig.Frame(mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true}))
	rig.Must(t, <-dialed)
	p.BecomeRDMAC()
	ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello"), Unsignaled: true})
	if s := p.Want(rdmap.OpSend); string(s.Payload) != "hello" {
		t.Errorf("got %q", s.Payload)
	}
	p.Send(p.Message(rdmap.OpSend, 1, rig.Pattern(60, 0)))
	ini.WantReceived(0, iwarp.StatusSuccess)
	if ini.Query().Stream.Version != iwarp.Version0 {
		t.Errorf("attributes %+v", ini.Query())
	}
}
