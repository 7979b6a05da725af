package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/mpa"
)

// siwFirst has siw send at once where A=0: the message arrives, and is counted as
// early.
func siwFirst(t *testing.T, p *iwarp.Preset) {
	ln := listenTCP(t)
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
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	mr, err := pd.Register(make([]byte, 10), iwarp.LocalWrite)
	must(t, err)
	d := iwarp.Dialer{PD: pd, Preset: p, MPA: mpa.Offer{ClientServer: true}, Prepare: func(qp *iwarp.QP) error {
		return qp.PostRecv(&iwarp.RecvWR{ID: 1, SGL: []iwarp.SGE{mr.Slice(0, 10)}})
	}}
	e := &end{t: t, rnic: rnic, pd: pd}
	if e.QP, err = d.Dial(within(t), "tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	e.wantReceived(1, iwarp.StatusSuccess)
	if odd := e.Stats().Odd; odd.Early != 1 || string(mr.Bytes()) != "before you" {
		t.Errorf("got %q, counted %+v", mr.Bytes(), odd)
	}
	should(t, errors.Join(e.Close(), <-sent))
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

// nudgedBy counts what we send to a peer that is silent for a minute.
func nudgedBy(t *testing.T, p *iwarp.Preset) (nudges uint64) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe(t)
		ended := make(chan error, 1)
		go func() {
			row := peerRow(t, p.Name)
			s, err := peersim.Respond(&row, b, peersim.Consumer{})
			for err == nil {
				_, err = s.Receive()
			}
			ended <- err
		}()
		pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
		qp, err := (&iwarp.Dialer{PD: pd, Preset: p}).Initiate(t.Context(), a, nil)
		must(t, err)
		must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("are you there?")}))
		time.Sleep(time.Minute)
		nudges = qp.Stats().Nudges
		_ = qp.Abort()
		<-ended
	})
	return nudges
}

// nudges has siw woken up, as it may have missed something.
func nudges(t *testing.T, p *iwarp.Preset) {
	if n := nudgedBy(t, p); n == 0 {
		t.Error("not nudged")
	}
}

// noNudges leaves an RNIC alone, which without the setting is nudged.
func noNudges(t *testing.T, p *iwarp.Preset) {
	if n := nudgedBy(t, p); n != 0 {
		t.Errorf("nudged %d times", n)
	}
	without := *p
	without.Nudge = 0
	answered := p.Initiate.RTR == mpa.RTRRead || p.Name == "irdma" // a Response to the RTR indication
	if n := nudgedBy(t, &without); (n == 0) != answered {
		t.Errorf("without the setting: nudged %d times", n)
	}
}
