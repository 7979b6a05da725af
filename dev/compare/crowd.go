package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/procstat"
)

// A crowd is connections over a network, both ends in this process, and in one PD.
type crowd struct {
	net  *network.Network
	rnic *iwarp.RNIC
	ln   *iwarp.Listener
	dial iwarp.Dialer
	qps  []*iwarp.QP // the two of each connection follow each other
}

func newCrowd(ctx context.Context, name string) (c *crowd, err error) {
	c = new(crowd)
	if c.net, err = network.Open(name); err != nil {
		return nil, err
	}
	if err := c.listen(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// listen has markers where a TCP of ours makes use of them.
func (c *crowd) listen(ctx context.Context) (err error) {
	c.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Markers: c.net.Streams && !c.net.Sockets})
	if c.dial.PD, err = c.rnic.AllocPD(); err != nil {
		return err
	}
	c.ln, err = c.net.Listen(ctx, c.net.Here, &iwarp.ListenConfig{PD: c.dial.PD})
	return err
}

func (c *crowd) close() {
	if c.ln != nil {
		_ = c.ln.Close()
	}
	_ = c.rnic.Close()
	_ = c.net.Close()
}

// grow adds connections.
func (c *crowd) grow(ctx context.Context, n int) error {
	for range n {
		from, to, err := meet(ctx, c.ln, iwarp.AcceptConfig{},
			func() (*iwarp.QP, error) { return c.net.Dial(ctx, &c.dial, c.ln.Addr().String()) })
		if err != nil {
			return err
		}
		c.qps = append(c.qps, from, to)
	}
	return nil
}

// shrink closes all connections, both ends of each at once, and some at a time. It returns how many ends do not close
// in order.
func (c *crowd) shrink() (lost int) {
	var all sync.WaitGroup
	var failed atomic.Int64
	slots := make(chan struct{}, 128)
	for _, qp := range c.qps {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if qp.Close() != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	c.qps = nil
	return int(failed.Load())
}

// measure sets up n connections, after some that have made what all share and are closed again, has settled do with
// them what it wants, and tells what they take then. What was held before is told, too.
func (c *crowd) measure(ctx context.Context, n int, settled func() error) (m connections, before int64, err error) {
	if err := c.grow(ctx, 20); err != nil {
		return m, 0, err
	}
	c.shrink()
	before = held()
	cpu, start := procstat.CPUTime(), time.Now()
	if err := c.grow(ctx, n); err != nil {
		return m, 0, err
	}
	elapsed, used := time.Since(start), procstat.CPUTime()-cpu
	if err := settled(); err != nil {
		return m, 0, err
	}
	return connections{
		Count: n, PerEnd: float64(held()-before) / float64(2*n),
		SetUps: float64(n) / elapsed.Seconds(), CPUSetUpUS: float64(used.Microseconds()) / float64(n),
	}, before, nil
}
