package iwarp_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

type pair struct {
	c, s     *iwarp.QP
	cpd, spd *iwarp.PD
}

func connect(t testing.TB, co, so mpa.Offer) *pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p := &pair{}
	p.spd = iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	p.cpd = iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{PD: p.spd})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ch := make(chan error, 1)
	go func() {
		r, err := ln.Accept(ctx)
		if err == nil {
			p.s, err = r.Accept(ctx, iwarp.AcceptConfig{MPA: so})
		}
		ch <- err
	}()
	d := iwarp.Dialer{PD: p.cpd, MPA: co}
	p.c, err = d.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ch; err != nil {
		t.Fatal(err)
	}
	return p
}

func TestQuick(t *testing.T) {
	for _, o := range []mpa.Offer{{}, {Markers: true}, {NoCRC: true}, {Revision: 1}, {RTR: mpa.RTRRead}, {RTR: mpa.RTRSend}, {ClientServer: true}} {
		so := o
		so.RTR = 0
		p := connect(t, o, so)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		sb := make([]byte, 1<<20)
		smr, _ := p.spd.Register(sb, iwarp.RemoteWrite|iwarp.RemoteRead)
		cb := make([]byte, 1<<20)
		for i := range cb {
			cb[i] = byte(i * 7)
		}
		cmr, _ := p.cpd.Register(cb, iwarp.LocalWrite)
		if n, err := p.c.Write(ctx, cmr.Slice(0, 1<<20), smr.Remote(0)); err != nil || n != 1<<20 {
			t.Fatal(n, err)
		}
		cb2 := make([]byte, 1<<20)
		cmr2, _ := p.cpd.Register(cb2, iwarp.LocalWrite)
		if n, err := p.c.Read(ctx, cmr2.Slice(0, 1<<20), smr.Remote(0)); err != nil || n != 1<<20 {
			t.Fatal(n, err)
		}
		if !bytes.Equal(cb, cb2) {
			t.Fatal("differs")
		}
		t.Logf("%+v", p.c.Negotiated())
		go p.s.Close()
		if err := p.c.Close(); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

func BenchmarkWrite1M(b *testing.B) {
	p := connect(b, mpa.Offer{}, mpa.Offer{})
	sb := make([]byte, 1<<20)
	smr, _ := p.spd.Register(sb, iwarp.RemoteWrite|iwarp.RemoteRead)
	cmr, _ := p.cpd.Register(make([]byte, 1<<20), iwarp.LocalWrite)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.c.Write(context.Background(), cmr.Slice(0, 1<<20), smr.Remote(0)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSend64(b *testing.B) {
	p := connect(b, mpa.Offer{}, mpa.Offer{})
	smr, _ := p.spd.Register(make([]byte, 64), iwarp.LocalWrite)
	cmr, _ := p.cpd.Register(make([]byte, 64), iwarp.LocalWrite)
	post := func(q *iwarp.QP, m *iwarp.MR) {
		if err := q.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{m.Slice(0, 64)}}); err != nil {
			b.Fatal(err)
		}
	}
	send := func(q *iwarp.QP, m *iwarp.MR) {
		if err := q.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true, SGL: []iwarp.SGE{m.Slice(0, 64)}}); err != nil {
			b.Fatal(err)
		}
	}
	ctx := context.Background()
	for range 4 {
		post(p.s, smr)
	}
	go func() {
		var wc [4]iwarp.WC
		for p.s.RecvCQ().Wait(ctx) == nil {
			n := p.s.RecvCQ().Poll(wc[:])
			for range n {
				if wc[0].Status != 0 {
					return
				}
				post(p.s, smr)
				send(p.s, smr)
			}
		}
	}()
	post(p.c, cmr)
	b.ReportAllocs()
	var wc [1]iwarp.WC
	for b.Loop() {
		post(p.c, cmr)
		send(p.c, cmr)
		p.c.RecvCQ().Wait(ctx)
		p.c.RecvCQ().Poll(wc[:])
	}
	b.StopTimer()
	p.c.Abort()
}
