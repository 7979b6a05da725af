package startup

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/mpa"
)

// siwFirst has siw send at once where A=0: the message arrives, and is counted as
// early.
func siwFirst(t *testing.T, p *iwarp.Preset) {
	ln := rig.ListenTCP(t)
	sent := make(chan error, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			sent <- err
			return
		}
		b := peerRow(t, p.Name)
		s, err := peersim.Respond(&b, c, peersim.Consumer{})
		if err == nil {
			err = s.Send([]byte("before you"))
		}
		if err == nil {
			err = s.Close()
		}
		sent <- err
	}()
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	mr, err := pd.Register(make([]byte, 10), iwarp.LocalWrite)
	rig.Must(t, err)
	d := iwarp.Dialer{PD: pd, Preset: p, MPA: mpa.Offer{ClientServer: true}, Prepare: func(qp *iwarp.QP) error {
		return qp.PostRecv(&iwarp.RecvWR{ID: 1, SGL: []iwarp.SGE{mr.Slice(0, 10)}})
	}}
	e := &rig.End{T: t, RNIC: rnic, PD: pd}
	if e.QP, err = d.Dial(rig.Within(t), "tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	e.WantReceived(1, iwarp.StatusSuccess)
	if odd := e.Stats().Odd; odd.Early != 1 || string(mr.Bytes()) != "before you" {
		t.Errorf("got %q, counted %+v", mr.Bytes(), odd)
	}
	rig.Should(t, errors.Join(e.Close(), <-sent))
}

// siwEchoes has siw's echo of S=1 in revision 1 taken for the Rtr frame's: it then
// gets a frame where it expects an FPDU.
func siwEchoes(t *testing.T, p *iwarp.Preset) {
	s := respondAs(t, peerRow(t, p.Name))
	e, err := s.dial(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{Dialect: mpa.DialectRtr}})
	if err != nil {
		t.Fatal(err) // the Reply is all right
	}
	_ = e.Abort() // an FPDU with the length of the letters "MP" would take a while
	if err := <-s.ended; err == nil {
		t.Error("siw took an Rtr frame for an FPDU")
	}
	otherDialects(t, p)
}

// otherDialects has the peer start with each dialect that the preset names, and a
// Listener that serves others.
func otherDialects(t *testing.T, p *iwarp.Preset) {
	for _, d := range p.Dialects {
		b := peerRow(t, p.Name)
		if b.Revision = 1; d == mpa.DialectRFC6581 {
			b.Revision = 2
		}
		b.Highest = b.Revision
		n, err := accepting{listen: iwarp.ListenConfig{Preset: p}}.from(t, b, peersim.Consumer{})
		if err != nil || n.Dialect != d {
			t.Errorf("%v: %v, negotiated %+v", d, err, n)
		}
		b.FallsBack = false
		others := iwarp.ListenConfig{Preset: p, Dialects: []mpa.Dialect{mpa.DialectRevision0, mpa.DialectStartKey}}
		if _, err := (accepting{listen: others}).from(t, b, peersim.Consumer{}); err == nil {
			t.Errorf("%v is served where others are", d)
		}
	}
}

// unagreedRead has cxgb4 open a connection of revision 1 by a Read, and us answer it
// although our consumer wants no Reads. A connection that is reset makes it fall back
// to that.
func unagreedRead(t *testing.T, p *iwarp.Preset) {
	otherDialects(t, p)
	b := peerRow(t, p.Name)
	b.Revision = 1
	a := accepting{listen: iwarp.ListenConfig{Preset: p}, accept: iwarp.AcceptConfig{NoReads: true}}
	n, err := a.from(t, b, peersim.Consumer{})
	if err != nil || n.Dialect != mpa.DialectRFC5044 || n.RTR != 0 || n.IRD != 0 {
		t.Errorf("%v, negotiated %+v", err, n)
	}
}

// silent has a peer that a script plays be silent for a minute. It returns how often we nudge it, and how many lines of
// the log speak of siw.
func silent(t *testing.T, b peers.Peer, d iwarp.Dialer) (nudges uint64, lines int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x, y := rig.NewPipe(t)
		ended := make(chan error, 1)
		go func() {
			s, err := peersim.Respond(&b, y, peersim.Consumer{})
			for err == nil {
				_, err = s.Receive()
			}
			ended <- err
		}()
		log := rig.LogHandler(func(r slog.Record) {
			if strings.Contains(r.Message, "siw") {
				lines++
			}
		})
		d := d
		d.PD = rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(log)}))
		qp, err := d.Initiate(t.Context(), x, nil)
		rig.Must(t, err)
		rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("are you there?")}))
		time.Sleep(time.Minute)
		nudges = qp.Stats().Nudges
		_ = qp.Abort()
		<-ended
	})
	return nudges, lines
}

// nudges has siw woken up, as it may have missed something, also where its Reply does not show that it is siw.
func nudges(t *testing.T, p *iwarp.Preset) {
	without := *p
	without.Nudge = 0
	for _, o := range []mpa.Offer{{}, {ClientServer: true}, {Dialect: mpa.DialectRFC5044}, {RTR: mpa.RTRWrite}} {
		d := iwarp.Dialer{Preset: p, MPA: o}
		if n, lines := silent(t, peerRow(t, p.Name), d); n != 6 || lines > 0 {
			t.Errorf("%+v: nudged %d times, %d lines", o, n, lines)
		}
		shown := o.Dialect == 0 && !o.ClientServer && o.RTR == 0
		d.Preset = &without
		if n, lines := silent(t, peerRow(t, p.Name), d); (n > 0) != shown || (lines == 1) == shown {
			t.Errorf("%+v, without the setting: nudged %d times, %d lines", o, n, lines)
		}
	}
}

// noNudges has an RNIC of revision 1 be silent: it is not nudged, and nothing is said about siw.
func noNudges(t *testing.T, p *iwarp.Preset) {
	without := *p
	without.Nudge = 0
	for preset, want := range map[*iwarp.Preset]int{p: 0, &without: 1} {
		if n, lines := silent(t, peerRow(t, p.Name), iwarp.Dialer{Preset: preset}); n != 0 || lines != want {
			t.Errorf("nudged %d times, %d lines, want %d", n, lines, want)
		}
	}
}
