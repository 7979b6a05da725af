package iwarp_test

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/machine"
)

// A short connection is set up, carries one message each way, and is closed by both ends.

// A shortTCP is that over plain TCP.
type shortTCP struct {
	b  testing.TB
	ln net.Listener
}

func newShortTCP(b testing.TB) *shortTCP {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { ln.Close() })
	s := &shortTCP{b, ln}
	go s.serve()
	return s
}

func (s *shortTCP) serve() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var msg [shortMessage]byte
			if _, err := io.ReadFull(c, msg[:]); err == nil {
				_, _ = c.Write(msg[:])
				_, _ = io.Copy(io.Discard, c)
			}
		}()
	}
}

const shortMessage = 64

func (s *shortTCP) run() error {
	c, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		return err
	}
	var msg [shortMessage]byte
	if _, err := c.Write(msg[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, msg[:]); err != nil {
		return err
	}
	return c.Close()
}

// A shortRDMA is that with Sends.
type shortRDMA struct {
	b        testing.TB
	ini, res *end
	ln       *iwarp.Listener
	from, to *iwarp.MR
}

func newShortRDMA(b testing.TB) *shortRDMA {
	s := &shortRDMA{b: b, ini: newEnd(b, iwarp.RNICConfig{}), res: newEnd(b, iwarp.RNICConfig{})}
	s.ln = listen(b, iwarp.ListenConfig{PD: s.res.pd})
	s.from, s.to = s.ini.mr(shortMessage, iwarp.LocalWrite), s.res.mr(shortMessage, iwarp.LocalWrite)
	go s.serve()
	return s
}

func (s *shortRDMA) serve() {
	ctx := context.Background()
	prepare := func(qp *iwarp.QP) error {
		return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.to.Slice(0, shortMessage)}})
	}
	for {
		req, err := s.ln.Accept(ctx)
		if err != nil {
			return
		}
		go func() {
			qp, err := req.Accept(ctx, iwarp.AcceptConfig{Prepare: prepare})
			if err != nil {
				return
			}
			if _, err := qp.RecvCQ().Next(ctx); err == nil {
				_ = qp.Send(ctx, s.to.Slice(0, shortMessage))
			}
			_ = qp.Close()
		}()
	}
}

func (s *shortRDMA) run() error {
	ctx := context.Background()
	d := iwarp.Dialer{PD: s.ini.pd, Prepare: func(qp *iwarp.QP) error {
		return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.from.Slice(0, shortMessage)}})
	}}
	qp, err := d.Dial(ctx, "tcp", s.ln.Addr().String())
	if err != nil {
		return err
	}
	if err := qp.Send(ctx, s.from.Slice(0, shortMessage)); err != nil {
		return err
	}
	if _, err := qp.RecvCQ().Next(ctx); err != nil {
		return err
	}
	return qp.Close()
}

// TestSetupAllocations: what a connection takes that is used once is bounded. Of 130 allocations at both ends, 27 are those of
// the TCP connection.
func TestSetupAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newShortRDMA(t)
	const most = 195 // half as many again
	if n := testing.AllocsPerRun(200, func() { should(t, s.run()) }); n > most {
		t.Errorf("%v allocations, and %d are the most", n, most)
	}
}

// shortWorkers is how many connections there are at a time.
const shortWorkers = 8

// through has n connections made, by several goroutines, and returns how long that took.
func through(b *testing.B, n int, run func() error) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	began := time.Now()
	var all sync.WaitGroup
	for range shortWorkers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				should(b, run())
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// BenchmarkShortConnection tells what a connection takes that is used once: over plain TCP, with
// Sends, and how the rates compare, both in turn in slices of 200 connections.
func BenchmarkShortConnection(b *testing.B) {
	b.Run("tcp", func(b *testing.B) {
		b.ReportAllocs()
		used := machine.CPUTime()
		through(b, b.N, newShortTCP(b).run)
		b.ReportMetric(float64(machine.CPUTime()-used)/float64(b.N)/1e3, "us-cpu/op")
	})
	b.Run("rdma", func(b *testing.B) {
		b.ReportAllocs()
		used := machine.CPUTime()
		through(b, b.N, newShortRDMA(b).run)
		b.ReportMetric(float64(machine.CPUTime()-used)/float64(b.N)/1e3, "us-cpu/op")
	})
	b.Run("ratio", func(b *testing.B) {
		t, r := newShortTCP(b), newShortRDMA(b)
		const slice = 200
		ratios := make([]float64, b.N)
		for i := range ratios {
			ratios[i] = float64(through(b, slice, t.run)) / float64(through(b, slice, r.run))
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/4], "q1")
		b.ReportMetric(ratios[len(ratios)/2], "median")
		b.ReportMetric(ratios[len(ratios)*3/4], "q3")
	})
}
