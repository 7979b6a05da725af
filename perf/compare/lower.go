package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/machine"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/report"
)

// lower is what idle connections take over a lower layer of our own, both ends in one process.
type lower struct {
	Network string `json:"network"`
	connections
	Lost   int     `json:"lost"`                // ends whose connection was lost before they closed, or then
	Left   float64 `json:"octets_left_per_end"` // of those that are closed
	Closed float64 `json:"closed_per_second"`
}

// lowerLayers are those whose memory is the process's own: over TCP of the system the table of connections has them.
var lowerLayers = []string{network.UserTCP, network.SCTP}

func (c *cli) measureLower(ctx context.Context, rec *record) error {
	rec.Lower = nil
	for _, name := range lowerLayers {
		for _, n := range []int{100, 1000, 10000} {
			fmt.Fprintf(os.Stderr, "%d connections over %s\n", n, name)
			measured, err := manyOver(ctx, name, n, afterwards)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rec.Lower = append(rec.Lower, measured)
		}
	}
	return nil
}

// A crowd is connections over a network, both ends in this process.
type crowd struct {
	net  *network.Network
	ln   *iwarp.Listener
	dial iwarp.Dialer
	qps  []*iwarp.QP
}

// manyOver sets up n connections, looks at what they take, closes them, and looks at what is left, if need be after some time.
func manyOver(ctx context.Context, name string, n int, patience time.Duration) (l lower, err error) {
	c := &crowd{}
	if c.net, err = network.Open(name); err != nil {
		return l, err
	}
	defer c.net.Close()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Markers: c.net.Streams})
	defer rnic.Close()
	if c.dial.PD, err = rnic.AllocPD(); err != nil {
		return l, err
	}
	if c.ln, err = c.net.Listen(ctx, c.net.Here, &iwarp.ListenConfig{PD: c.dial.PD}); err != nil {
		return l, err
	}
	defer c.ln.Close()
	if err := c.grow(ctx, 20); err != nil { // so that what all connections share is there
		return l, err
	}
	c.shrink()
	before, cpu, start := held(), machine.CPUTime(), time.Now()
	if err := c.grow(ctx, n); err != nil {
		return l, err
	}
	elapsed, used := time.Since(start), machine.CPUTime()-cpu
	l = lower{Network: name, connections: connections{
		Count: n, PerEnd: float64(held()-before) / float64(2*n),
		SetUps: float64(n) / elapsed.Seconds(), CPUSetUpUS: float64(used.Microseconds()) / float64(n),
	}}
	start = time.Now()
	l.Lost = c.shrink()
	l.Closed = float64(n) / time.Since(start).Seconds()
	awaitQuiet(before, patience)
	l.Left = float64(held()-before) / float64(2*n)
	return l, nil
}

// afterwards is longer than TCP keeps a connection after its end, in TIME-WAIT: a minute.
const afterwards = 75 * time.Second

// awaitQuiet waits until nothing is held any more that was not before, for some time at most.
func awaitQuiet(before int64, limit time.Duration) {
	for begun := time.Now(); held() > before && time.Since(begun) < limit; {
		time.Sleep(min(time.Second, limit))
	}
}

// grow adds connections.
func (c *crowd) grow(ctx context.Context, n int) error {
	for range n {
		from, to, err := meet(ctx, c.ln, iwarp.AcceptConfig{}, func() (*iwarp.QP, error) { return c.net.Dial(ctx, &c.dial, c.ln.Addr().String()) })
		if err != nil {
			return err
		}
		c.qps = append(c.qps, from, to)
	}
	return nil
}

// shrink closes all connections, both ends of each at once, and some at a time. It returns how many ends do not close in order.
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

func lowerTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading(slices.Concat([]string{"over"}, connectionsHead(), []string{"closed in a second", "ends lost", "octets left of an end"})...))
	for _, l := range rec.Lower {
		b.WriteString(report.MarkdownRow(slices.Concat([]string{l.Network}, l.row(strconv.Itoa(l.Count), l.Count), []string{whole(l.Closed), strconv.Itoa(l.Lost), whole(max(l.Left, 0))})...))
	}
	return b.String()
}
