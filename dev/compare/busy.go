package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/quantile"
)

// busy is how many connections of a crowd work. Each of their initiators, on which somebody waits, may have two
// descriptors more.
const busy = 100

// crowded is how many idle connections are many. A process that may open fewer descriptors tells nothing of them.
const crowded = 4000

// busyTrial compares what connections do that work among many that do not with what they do alone.
func busyTrial() trial {
	idle := min(10000, maxConnections()-2*busy) - busy
	work := fmt.Sprintf("64 B Reads on %d connections, %d idle ones beside", busy, idle)
	return trial{[]goal{{work, "", "rate beside that alone", 0.9, false}},
		func(ctx context.Context, _ *own) ([]float64, error) {
			if idle < crowded {
				return []float64{0}, nil
			}
			c, err := newCrowd(ctx, network.TCP)
			if err != nil {
				return nil, err
			}
			defer c.close()
			ratio, err := c.busyAmong(ctx, idle, 50*time.Millisecond)
			return []float64{ratio}, err
		}}
}

// busyAmong returns the rate of the first connections beside idle ones that have carried a message each way, as a ratio
// to that without, before and afterwards.
func (c *crowd) busyAmong(ctx context.Context, idle int, slice time.Duration) (float64, error) {
	if err := c.grow(ctx, busy); err != nil {
		return 0, err
	}
	near, err := c.dial.PD.Register(make([]byte, 64*busy), iwarp.LocalWrite)
	if err != nil {
		return 0, err
	}
	far, err := c.dial.PD.Register(make([]byte, 64), iwarp.RemoteRead)
	if err != nil {
		return 0, err
	}
	alone, err := c.readFrom(ctx, slice, far, near)
	if err != nil {
		return 0, err
	}
	if err := c.grow(ctx, idle); err != nil {
		return 0, err
	}
	if err := c.exchange(ctx); err != nil {
		return 0, err
	}
	among, err := c.readFrom(ctx, slice, far, near)
	if err != nil {
		return 0, err
	}
	c.abortFrom(2 * busy)
	again, err := c.readFrom(ctx, slice, far, near)
	return 2 * among / (alone + again), err
}

// abortFrom has only the first ends stay.
func (c *crowd) abortFrom(n int) {
	for _, qp := range c.qps[n:] {
		_ = qp.Abort()
	}
	c.qps = c.qps[:n]
}

// readFrom returns how many Reads of the first connections there are in a second: the median of some slices, of which
// the first does not count.
func (c *crowd) readFrom(ctx context.Context, slice time.Duration, far, near *iwarp.MR) (float64, error) {
	runtime.GC()
	const slices = 16
	var rates []float64
	for range slices + 1 {
		rate, err := c.readFor(ctx, slice, far, near)
		if err != nil {
			return 0, err
		}
		rates = append(rates, rate)
	}
	return quantile.Median(rates[1:]), nil
}

func (c *crowd) readFor(ctx context.Context, length time.Duration, far, near *iwarp.MR) (float64, error) {
	var done atomic.Int64
	var all sync.WaitGroup
	failed := make([]error, busy)
	began := time.Now()
	for i := range busy {
		all.Go(func() {
			for time.Since(began) < length && failed[i] == nil {
				_, failed[i] = c.qps[2*i].Read(ctx, near.Slice(64*i, 64), far.Remote(0))
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), errors.Join(failed...)
}
