package perf_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// benchDepth is how many messages are under way.
const benchDepth = 4

// A benchEnd is one end of a connection, with slots to send from and receive into.
type benchEnd struct {
	qp     *iwarp.QP
	cq     *iwarp.CQ
	tx, rx *iwarp.MR
}

func newBenchEnd(b *testing.B, pd *iwarp.PD, size int) *benchEnd {
	b.Helper()
	e := new(benchEnd)
	var err error
	if e.cq, err = pd.RNIC().CreateCQ(64); err != nil {
		b.Fatal(err)
	}
	if e.tx, err = pd.Register(make([]byte, benchDepth*size), iwarp.RemoteRead); err != nil {
		b.Fatal(err)
	}
	if e.rx, err = pd.Register(make([]byte, benchDepth*size), iwarp.RemoteWrite); err != nil {
		b.Fatal(err)
	}
	return e
}

func (e *benchEnd) config() iwarp.QPConfig {
	return iwarp.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16, RecvDepth: 16}
}

// wait polls until a completion of op has come in.
func (e *benchEnd) wait(ctx context.Context, op iwarp.Op) error {
	for {
		wc, err := e.cq.Next(ctx)
		if err != nil {
			return err
		}
		if err := wc.Err(); err != nil || wc.Op == op {
			return err
		}
	}
}

// connect returns the two ends of a connection over loopback TCP.
func connect(b *testing.B, size int, offer mpa.Offer) (a, z *benchEnd) {
	b.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	b.Cleanup(func() { rnic.Close() })
	pd, err := rnic.AllocPD()
	testrig.Must(b, err)
	ln, err := iwarp.Listen(b.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(b, err)
	defer ln.Close()
	a, z = newBenchEnd(b, pd, size), newBenchEnd(b, pd, size)
	offer.IRD, offer.ORD = benchDepth, benchDepth
	accepted := make(chan error, 1)
	go func() {
		req, err := ln.Accept(b.Context())
		if err == nil {
			z.qp, err = req.Accept(b.Context(), iwarp.AcceptConfig{PD: pd, QP: z.config(), MPA: offer.Answer()})
		}
		accepted <- err
	}()
	d := iwarp.Dialer{PD: pd, QP: a.config(), MPA: offer}
	if a.qp, err = d.Dial(b.Context(), "tcp", ln.Addr().String()); err != nil {
		b.Fatal(err)
	}
	testrig.Must(b, <-accepted)
	return a, z
}

// echo answers receives with Sends, as many as come.
func (e *benchEnd) echo(ctx context.Context, size int) error {
	recv := iwarp.RecvWR{SGL: []iwarp.SGE{e.rx.Slice(0, size)}}
	send := iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{e.tx.Slice(0, size)}}
	for {
		if err := e.wait(ctx, iwarp.OpRecv); err != nil {
			return err
		}
		if err := e.qp.PostRecv(&recv); err != nil {
			return err
		}
		if err := e.qp.PostSend(&send); err != nil {
			return err
		}
	}
}

// BenchmarkSend64 is a ping-pong of 64 bytes: one operation is a whole round trip.
func BenchmarkSend64(b *testing.B) {
	const size = 64
	a, z := connect(b, size, mpa.Offer{})
	recv := iwarp.RecvWR{SGL: []iwarp.SGE{a.rx.Slice(0, size)}}
	send := iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{a.tx.Slice(0, size)}}
	for _, e := range []*benchEnd{a, z} {
		testrig.Must(b, e.qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{e.rx.Slice(0, size)}}))
	}
	go z.echo(b.Context(), size) // its error is the connection's end
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		testrig.Must(b, a.qp.PostSend(&send))
		testrig.Must(b, a.wait(b.Context(), iwarp.OpRecv))
		testrig.Must(b, a.qp.PostRecv(&recv))
	}
}

// stream posts work requests, benchDepth of them under way.
func stream(b *testing.B, a *benchEnd, wr iwarp.SendWR, size int) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	under := 0
	for b.Loop() {
		if under == benchDepth {
			testrig.Must(b, a.wait(b.Context(), wr.Op))
			under--
		}
		testrig.Must(b, a.qp.PostSend(&wr))
		under++
	}
	for ; under > 0; under-- {
		testrig.Must(b, a.wait(b.Context(), wr.Op))
	}
}

// BenchmarkWrite1M is a stream of Writes of 1 MiB, in each form that FPDUs can have.
func BenchmarkWrite1M(b *testing.B) {
	const size = 1 << 20
	for _, offer := range []mpa.Offer{{}, {NoCRC: true}, {Markers: true}, {Markers: true, NoCRC: true}} {
		b.Run(fmt.Sprintf("markers=%v/crc=%v", offer.Markers, !offer.NoCRC), func(b *testing.B) {
			a, z := connect(b, size, offer)
			stream(b, a, iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{a.tx.Slice(0, size)},
				Remote: z.rx.Remote(0)}, size)
		})
	}
}

// BenchmarkRead64K is a stream of Reads of 64 KiB.
func BenchmarkRead64K(b *testing.B) {
	const size = 64 << 10
	a, z := connect(b, size, mpa.Offer{})
	stream(b, a, iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{a.rx.Slice(0, size)}, Remote: z.tx.Remote(0)}, size)
}
