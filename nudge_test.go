package iwarp_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// What a Responder answers to an Initiator that offers all kinds of RTR indication.
var (
	likeSIW = mpa.Enhanced{A: true, C: true, IRD: 32, ORD: 32}
	notSIW  = mpa.Enhanced{A: true, B: true, C: true, D: true, IRD: 32, ORD: 32}
	onlyOne = mpa.Enhanced{A: true, D: true, IRD: 32, ORD: 32} // as siw answers some offers, but not ours
	noRTR   = mpa.Enhanced{IRD: 32, ORD: 32}
	tooDeep = mpa.Enhanced{A: true, C: true, IRD: 129, ORD: 32}
)

// A patience is what an Initiator does with a peer that is silent for ten minutes.
type patience struct {
	at    []time.Duration // when FPDUs came
	stats iwarp.Stats
	said  []time.Duration // when its log spoke of QPConfig.Nudge
}

// silentPeer runs an Initiator against a peer that the test plays, and that answers the n-th FPDU with one of its own.
func silentPeer(t *testing.T, d iwarp.Dialer, answer mpa.StartupFields, n int) (p patience) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		log := rig.LogHandler(func(r slog.Record) {
			if strings.Contains(r.Message, "QPConfig.Nudge") {
				p.said = append(p.said, time.Since(began))
			}
		})
		d := d
		d.PD = rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(log)}))
		a, b := rig.NewPipe(t)
		peer := rig.NewPeer(t, a)
		started := make(chan *iwarp.QP, 1)
		go func() {
			qp, err := d.Initiate(t.Context(), b, nil)
			rig.Should(t, err)
			rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})) // which no peer has to answer
			started <- qp
		}()
		peer.WantFrame(mpa.KeyRequest)
		peer.Send(rig.Frame(answer))
		qp := <-started
		for len(p.at) < 100 {
			if _, err := peer.Link.NextSegment(began.Add(10 * time.Minute)); err != nil {
				break
			}
			if p.at = append(p.at, time.Since(began)); len(p.at) == n {
				peer.Send(peer.Write(1, 0, nil))
			}
		}
		p.stats = qp.Stats()
		_ = qp.Abort()
	})
	return p
}

// enhancedReply is a Reply of revision 2 with enhanced data.
func enhancedReply(e mpa.Enhanced) mpa.StartupFields {
	f := rig.Reply(2)
	f.PrivateData = rig.Enhanced(e)
	return f
}

// TestNudge has an Initiator hear nothing after its first FPDU. If the peer is siw, by its Reply or by the setting, the
// Initiator sends zero-length Writes, at growing distances, and gives up after a while. A peer that says something is
// left alone, and so is every other peer: if that may be siw all the same, the log names the setting, once.
func TestNudge(t *testing.T) {
	const ms = time.Millisecond
	usual := []time.Duration{10 * ms, 50 * ms, 210 * ms, 850 * ms, 3410 * ms, 13650 * ms}
	slow := []time.Duration{100 * ms, 500 * ms, 2100 * ms, 8500 * ms, 34100 * ms, 136500 * ms}
	clientServer := mpa.Offer{ClientServer: true}
	revision1 := mpa.Offer{Dialect: mpa.DialectRFC5044}
	for name, c := range map[string]struct {
		offer  mpa.Offer
		nudge  time.Duration
		reply  mpa.StartupFields
		first  int // FPDUs that come at once
		answer int
		want   []time.Duration
		said   bool
	}{
		"siw":                          {reply: enhancedReply(likeSIW), first: 2, want: usual},
		"siw, other distances":         {reply: enhancedReply(likeSIW), nudge: 100 * ms, first: 2, want: slow},
		"siw answers at once":          {reply: enhancedReply(likeSIW), first: 2, answer: 1},
		"siw answers the second nudge": {reply: enhancedReply(likeSIW), first: 2, answer: 4, want: usual[:2]},
		"siw, switched off":            {reply: enhancedReply(likeSIW), nudge: -1, first: 2},
		"siw, offered Write alone": {reply: enhancedReply(likeSIW),
			offer: mpa.Offer{RTR: mpa.RTRWrite}, first: 2, said: true},
		"all kinds":              {reply: enhancedReply(notSIW), first: 2},
		"all kinds, switched on": {reply: enhancedReply(notSIW), nudge: 100 * ms, first: 2, want: slow},
		"one kind":               {reply: enhancedReply(onlyOne), first: 2, said: true},
		"too deep":               {reply: enhancedReply(tooDeep), first: 2},
		"A=0":                    {reply: enhancedReply(noRTR), offer: clientServer, first: 1, said: true},
		"A=0, the peer answers":  {reply: enhancedReply(noRTR), offer: clientServer, first: 1, answer: 1},
		"A=0, switched on": {reply: enhancedReply(noRTR), offer: clientServer,
			nudge: 100 * ms, first: 1, want: slow},
		"A=0, switched off": {reply: enhancedReply(noRTR), offer: clientServer, nudge: -1, first: 1},
		"revision 1":        {reply: rig.Reply(1), offer: revision1, first: 1, said: true},
	} {
		d := iwarp.Dialer{MPA: c.offer, QP: iwarp.QPConfig{Nudge: c.nudge}}
		got := silentPeer(t, d, c.reply, c.answer)
		want := append(make([]time.Duration, c.first), c.want...)
		if !slices.Equal(got.at, want) {
			t.Errorf("%s: FPDUs at %v, want %v", name, got.at, want)
		}
		if s := got.stats; s.Nudges != uint64(len(c.want)) || s.Sent[rdmap.OpWrite].Bytes != 0 {
			t.Errorf("%s: counted %+v", name, s)
		}
		if said := slices.Equal(got.said, []time.Duration{3 * time.Second}); said != c.said || len(got.said) > 1 {
			t.Errorf("%s: said at %v", name, got.said)
		}
	}
}

// TestStrictSTag has a Responder that looks an STag up even for an empty Write, as RFC 5041, section 5.2, forbids, and
// takes a while for its answers. It is not nudged, unless it answers like siw: then the error of the lost connection
// names the setting, and not where the connection was lost otherwise.
func TestStrictSTag(t *testing.T) {
	for name, c := range map[string]struct {
		offer  mpa.Offer
		nudge  time.Duration
		reply  mpa.StartupFields
		resets bool // on what is no nudge
		blamed bool
	}{
		"revision 1":             {offer: mpa.Offer{Dialect: mpa.DialectRFC5044}, reply: rig.Reply(1)},
		"all kinds":              {reply: enhancedReply(notSIW)},
		"like siw":               {reply: enhancedReply(likeSIW), blamed: true},
		"like siw, switched off": {reply: enhancedReply(likeSIW), nudge: -1},
		"not nudged yet":         {reply: enhancedReply(likeSIW), resets: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := rig.NewPipe(t)
			p := rig.NewPeer(t, a)
			p.Meanwhile(func() {
				p.WantFrame(mpa.KeyRequest)
				p.Send(rig.Frame(c.reply))
				if c.reply.Rev == 2 {
					p.Want(rdmap.OpWrite) // the RTR indication
				}
				p.Want(rdmap.OpSend)
				if !c.resets && quietFor(p, 100*time.Millisecond) {
					p.Send(p.Message(rdmap.OpSend, 1, nil))
					return
				}
				p.Link.Reset()
			})
			e := &rig.End{T: t}
			d := iwarp.Dialer{MPA: c.offer, QP: iwarp.QPConfig{Nudge: c.nudge}}
			d.Prepare = func(qp *iwarp.QP) error { return qp.PostRecv(&iwarp.RecvWR{ID: 1}) }
			var err error
			e.QP, err = d.Initiate(t.Context(), b, nil)
			rig.Must(t, err)
			e.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello"), Unsignaled: true})
			wc, err := e.RecvCQ().Next(t.Context())
			if lost := err != nil || wc.Status != iwarp.StatusSuccess; lost != (c.blamed || c.resets) {
				t.Errorf("%s: %v, %v", name, wc, err)
			}
			if blamed := rig.Contains(e.Err(), "QPConfig.Nudge"); blamed != c.blamed {
				t.Errorf("%s: %v", name, e.Err())
			}
			_ = e.Abort()
		})
	}
}

// quietFor reports whether nothing comes for a time.
func quietFor(p *rig.Peer, d time.Duration) bool {
	_, err := p.Link.NextSegment(time.Now().Add(d))
	return err != nil
}

// TestNudgeIsNoProgress: an Initiator whose peer says nothing ends the connection in time, however often it has nudged
// that peer. What its consumer sends is another matter.
//
// Proves Z04.
func TestNudgeIsNoProgress(t *testing.T) {
	const idle = 700 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true, Dialer: iwarp.Dialer{QP: iwarp.QPConfig{IdleTimeout: idle,
			Nudge: 10 * time.Millisecond}}}.Connect(t)
		synctest.Wait()
		time.Sleep(idle - 1) // of virtual time
		rig.Must(t, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true}))
		rig.WantEndAfter(t, ini.QP, idle, iwarp.ErrIdle)
		if n := ini.Stats().Nudges; n < 4 {
			t.Errorf("%d nudges", n)
		}
		_ = res.Close()
	})
}
