package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
	"github.com/goiwarp/iwarp/rdmap"
)

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
		{name: "the largest", dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: mpa.MaxDepth, ORD: mpa.MaxDepth}}, ird: int(mpa.MaxDepth), ord: int(mpa.MaxDepth)},
		{name: "not asked for", ird: iwarp.DefaultReadDepth, ord: iwarp.DefaultReadDepth},
		{name: "left to the consumer", dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: none, ORD: none}}, ird: iwarp.DefaultReadDepth, ord: iwarp.DefaultReadDepth},
		{name: "within the RNIC's limit", limits: iwarp.Limits{IRD: 4}, ird: 4, ord: iwarp.DefaultReadDepth},
		{name: "no Reads", dialer: iwarp.Dialer{NoReads: true}},
		{
			name: "told in private data", dialer: iwarp.Dialer{Preset: smb, MPA: mpa.Offer{IRD: 6, ORD: 5, PrivateData: []byte("hello")}},
			told: "\x00\x00\x00\x06\x00\x00\x00\x05hello", answer: ulpdata.SMBDirect{IRD: 2, ORD: 9}.Append(nil), ird: 6, ord: 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ln := listenTCP(t)
			d := c.dialer
			d.PD, d.QP = newPD(t, newRNIC(t, iwarp.RNICConfig{Limits: c.limits})), iwarp.QPConfig{Nudge: -1}
			ini := &end{t: t}
			dialed := ini.dials(d, ln)
			acceptRequest(t, ln).conn.Close()
			p := acceptPeer(t, ln)
			if f := p.wantFrame(mpa.KeyRequest); f.Rev() != 1 || string(f.ULPData()) != c.told {
				t.Errorf("the second Request is %v", f)
			}
			p.send(frame(reply(1, c.answer...)))
			must(t, <-dialed)
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
	ln := listenTCP(t)
	ini := newEnd(t, iwarp.RNICConfig{})
	dialed := ini.dials(iwarp.Dialer{PD: ini.pd, MPA: mpa.Offer{IRD: 3, ORD: 2}, QP: iwarp.QPConfig{Nudge: -1}}, ln)
	acceptRequest(t, ln).conn.Close()
	p := acceptRequest(t, ln)
	p.send(frame(reply(1)))
	must(t, <-dialed)
	p.want(rdmap.OpWrite)
	sink := ini.mr(8, iwarp.LocalWrite)
	for id := range uint64(3) {
		ini.post(&iwarp.SendWR{ID: id, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)}, Remote: iwarp.Remote{STag: 5}})
	}
	ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("after them")})
	first, err := rdmap.ParseReadRequest(p.want(rdmap.OpReadRequest).Payload)
	must(t, err)
	p.want(rdmap.OpReadRequest)
	src := ini.filled(8, 1, iwarp.RemoteRead)
	for msn := range uint32(3) {
		p.send(p.readRequest(msn+1, rdmap.ReadRequest{SinkSTag: 7, Size: 8, SrcSTag: src.STag(), SrcTO: src.Remote(0).TO}))
	}
	for range 3 { // before a third Read of ours
		p.want(rdmap.OpReadResponse)
	}
	h := rdmap.OpReadResponse.Header(1)
	h.STag, h.TO, h.Last = first.SinkSTag, first.SinkTO, true
	p.send(p.fpdu(h, make([]byte, 8)))
	p.want(rdmap.OpReadRequest)
	p.want(rdmap.OpSend)
	_ = ini.Abort()
}

// TestFallbackTooLong has a preset put depths in front of private data that leave no room for them in revision 1: what
// cannot be kept is an error, and no second connection is opened.
//
// Proves E13.
func TestFallbackTooLong(t *testing.T) {
	ln := listenTCP(t)
	rnic := newRNIC(t, iwarp.RNICConfig{})
	d := iwarp.Dialer{PD: newPD(t, rnic), Preset: &iwarp.Preset{SMBDirect: true}, MPA: mpa.Offer{PrivateData: make([]byte, 508)}}
	dialed := (&end{t: t}).dials(d, ln)
	acceptRequest(t, ln).conn.Close()
	if err := <-dialed; !errors.Is(err, mpa.ErrOffer) || !contains(err, "retried with revision 1: ") {
		t.Error(err)
	}
	if s := rnic.Stats().Startup; s.Started != 1 || s.Fallbacks != 0 {
		t.Errorf("counted %+v", s)
	}
}
