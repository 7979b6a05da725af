package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// Growth is how cost grows with connections and round-trip time, as measured.
type growth struct {
	Connections []connections `json:"connections"`
	RoundTrips  []roundTrip   `json:"round_trips"`
}

// connections is what so many idle ones take, both ends in one process.
type connections struct {
	Count      int     `json:"count"`
	PerEnd     float64 `json:"bytes_per_end"` // of heap and stacks
	SetUps     float64 `json:"set_up_per_second"`
	CPUSetUpUS float64 `json:"cpu_us_per_set_up"`
}

// roundTrip is what is left with a delay on the way.
type roundTrip struct {
	AddedUS   float64 `json:"added_us"`
	Latency   float64 `json:"latency_us"`      // half a round trip of a Send of 64 bytes
	Bandwidth float64 `json:"bandwidth_mib_s"` // of Writes of 1 MiB
}

func (c *cli) measureGrowth(ctx context.Context, rec *record) error {
	rec.Growth = growth{}
	for _, n := range slices.Compact([]int{min(100, maxConnections()), min(1000, maxConnections()),
		min(10000, maxConnections())}) {
		fmt.Fprintf(os.Stderr, "%d connections\n", n)
		measured, err := manyConnections(ctx, n)
		if err != nil {
			return err
		}
		rec.Growth.Connections = append(rec.Growth.Connections, measured)
	}
	for _, added := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond} {
		fmt.Fprintf(os.Stderr, "round trips longer by %v\n", added)
		measured, err := delayed(ctx, added)
		if err != nil {
			return err
		}
		rec.Growth.RoundTrips = append(rec.Growth.RoundTrips, measured)
	}
	return nil
}

// manyConnections sets up n connections, has a message go each way on each and a receive posted at each end, and looks
// at what they take when they have rested.
func manyConnections(ctx context.Context, n int) (connections, error) {
	c, err := newCrowd(ctx, network.TCP)
	if err != nil {
		return connections{}, err
	}
	defer c.close()
	time.Sleep(rest) // what was measured before has left something, too
	measured, _, err := c.measure(ctx, n, func() error {
		if err := c.exchange(ctx); err != nil {
			return err
		}
		time.Sleep(rest)
		for _, qp := range c.qps {
			if err := qp.PostRecv(&iwarp.RecvWR{}); err != nil {
				return err
			}
		}
		time.Sleep(rest)
		return nil
	})
	return measured, err
}

// exchange has a message go each way on each connection.
func (c *crowd) exchange(ctx context.Context) error {
	for i := range c.qps {
		if err := sendOnce(ctx, c.qps[i], c.qps[i^1]); err != nil {
			return err
		}
	}
	return nil
}

// rest is how long connections have been idle when it is looked at what they take: what work took has been given back
// then.
const rest = 5 * time.Second

// sendOnce has a message go from one end to the other.
func sendOnce(ctx context.Context, from, to *iwarp.QP) error {
	if err := to.PostRecv(&iwarp.RecvWR{}); err != nil {
		return err
	}
	if err := from.Send(ctx, iwarp.SGE{}); err != nil {
		return err
	}
	return nextMessage(ctx, to)
}

// nextMessage waits for the completion of a receive.
func nextMessage(ctx context.Context, qp *iwarp.QP) error {
	wc, err := qp.RecvCQ().Next(ctx)
	if err != nil {
		return err
	}
	return wc.Err()
}

// meet dials, and accepts at the same time, as the settings say.
func meet(ctx context.Context, ln *iwarp.Listener, as iwarp.AcceptConfig, dial func() (*iwarp.QP, error)) (from,
	to *iwarp.QP, err error) {
	type end struct {
		qp  *iwarp.QP
		err error
	}
	accepted := make(chan end, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			accepted <- end{err: err}
			return
		}
		qp, err := req.Accept(ctx, as)
		accepted <- end{qp, err}
	}()
	if from, err = dial(); err != nil {
		return nil, nil, err
	}
	there := <-accepted
	return from, there.qp, there.err
}

// held returns how many bytes the program has, in its heap and in stacks.
func held() int64 {
	heap, stacks := procstat.Held()
	return int64(heap + stacks)
}

// relayIters is how many messages are measured through the relay.
const relayIters = 200

// delayed measures through a relay that holds each byte back for half of what is added.
func delayed(ctx context.Context, added time.Duration) (roundTrip, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := perf.Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return roundTrip{}, err
	}
	defer ln.Close()
	go func() { _ = perf.Serve(ctx, ln, nil) }()
	addr, err := startRelay(ctx, ln.Addr().String(), added/2)
	if err != nil {
		return roundTrip{}, err
	}
	r := roundTrip{AddedUS: float64(added) / 1e3}
	for _, w := range []work{workOf("latency-64"), workOf("bandwidth-1m")} {
		// Five slices, however long: they must be longer than a round trip.
		opts := perf.Options{Ops: []perf.Op{w.op}, Sizes: []int{w.size}, NoBaseline: true,
			Duration: time.Millisecond, Iters: relayIters}
		measured, err := perf.Connect(ctx, addr, opts, perf.Observer{})
		if err != nil {
			return roundTrip{}, err
		}
		if result := measured.Results[0]; w.less {
			r.Latency = result.Typical
		} else {
			r.Bandwidth = result.BWAverage
		}
		awaitFree()
	}
	return r, nil
}

// awaitFree gives the responder time to notice that a measurement has ended.
func awaitFree() { time.Sleep(50 * time.Millisecond) }

func connectionsTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading(connectionsHead()...))
	for _, c := range rec.Growth.Connections {
		b.WriteString(report.MarkdownRow(c.row(strconv.Itoa(c.Count), c.Count)...))
	}
	if n := len(rec.Growth.Connections); n > 0 {
		b.WriteString(report.MarkdownRow(rec.Growth.Connections[n-1].row("100000 (computed)", 1e5)...))
	}
	return b.String()
}

func connectionsHead() []string {
	return []string{"idle connections", "bytes for an end", "both ends of all", "set up in a second",
		"CPU for setting one up"}
}

// row tells of so many, which are given a name.
func (c connections) row(name string, n int) []string {
	return []string{name, whole(c.PerEnd), short(c.PerEnd*2*float64(n)/(1<<20)) + " MiB", whole(c.SetUps),
		whole(c.CPUSetUpUS) + " us"}
}

func roundTripTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("added to the round trip", "64 bytes, half a round trip", "1 MiB Writes"))
	for _, r := range rec.Growth.RoundTrips {
		b.WriteString(report.MarkdownRow(short(r.AddedUS)+" us", short(r.Latency)+" us", short(r.Bandwidth)+" MiB/s"))
	}
	return b.String()
}

// buffersText computes the formulae of draft-culley-iwarp-mpa, section 13.1.2, beside what
// connections take here.
func buffersText(rec *record) string {
	const emss, rate, delay = 1500.0, 12.5e9, 1e-3 // 100 Gb/s
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("", "10,000 connections", "100,000 connections"))
	mib := func(x float64) string { return short(x/(1<<20)) + " MiB" }
	row := func(what string, of func(n float64) float64) {
		b.WriteString(report.MarkdownRow(what, mib(of(1e4)), mib(of(1e5))))
	}
	row("BufferSizeTCP = bandwidth * delay, for 100 Gb/s and 1 ms in all",
		func(float64) float64 { return rate * delay })
	row("BufferSizeNAF = EMSS * connections + EMSS, for an EMSS of 1500",
		func(n float64) float64 { return emss*n + emss })
	row("BufferSizeAF = EMSS", func(float64) float64 { return emss })
	if n := len(rec.Growth.Connections); n > 0 {
		per := rec.Growth.Connections[n-1].PerEnd
		row("iwarp, all of an idle end's memory, as measured", func(n float64) float64 { return per * n })
	}
	if cc, r, ok := bulkWrite(rec); ok {
		fmt.Fprintf(&b, "\nUnder %s, Writes of 1 MiB take %.2f ns of CPU for a byte at both ends together: 100 Gb/s would take %.1f such CPUs, where plain TCP would take %.1f.\n",
			cc, r.CPUByte, r.CPUByte*rate/1e9, r.TCP.CPUByte*rate/1e9)
	}
	return b.String()
}

// bulkWrite returns the result of Writes of 1 MiB, and its congestion control: of several the first whose bandwidth
// another run would repeat, or else the first. One whose CPU time would not be repeated says nothing.
func bulkWrite(rec *record) (cc string, best perf.Result, ok bool) {
	for _, row := range perfRows(rec) {
		r := row.result
		if r.Op != perf.Write || r.Size != 1<<20 || r.TCP == nil || r.CPUByte == 0 ||
			slices.Contains(r.Inconclusive, "ratio_cpu") {
			continue
		}
		repeated := func(r perf.Result) bool { return !slices.Contains(r.Inconclusive, "ratio_bw") }
		if !ok || repeated(r) && !repeated(best) {
			cc, best, ok = row.cc, r, true
		}
	}
	return cc, best, ok
}
