package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/report"
)

// A short connection is set up, has one message of 64 bytes each way, and is closed by both ends, which are in this
// process.

// shortMessage is the size of the two messages, in bytes.
const shortMessage = 64

// shortResult is what short connections of one way take.
type shortResult struct {
	Way string `json:"way"`
	// Rate and CPU are of a connection: how many there are in a second, and microseconds of both ends.
	Rate shortFigure `json:"per_second"`
	CPU  shortFigure `json:"cpu_us"`
}

// A shortFigure is the median of all rounds, and the ratios to plain TCP, and to TCP with iwarp's exchange, within a
// round.
type shortFigure struct {
	Median float64  `json:"median"`
	Plain  spreadOf `json:"ratio_to_plain"`
	Same   spreadOf `json:"ratio_to_same_exchange"`
}

// A shortWay is a way to have short connections.
type shortWay struct {
	name string
	// open returns what has one connection, and what ends the server.
	open func(ctx context.Context) (run func() error, end func(), err error)
}

// shortWays has plain TCP first, and then what iwarp is compared with too.
func shortWays() []shortWay {
	return []shortWay{
		{plainTCP, plainExchange.open},
		{"TCP with iwarp's exchange", sameExchange.open},
		{"iwarp", openShort},
	}
}

const (
	shortRounds  = 24
	shortSlice   = 500 // connections of a turn
	shortWorkers = 8   // connections at a time
)

func (c *cli) measureShort(ctx context.Context, rec *record) (err error) {
	fmt.Fprintln(os.Stderr, "short connections")
	rec.Short, err = shortConnections(ctx, shortRounds, shortSlice)
	return err
}

// shortConnections gives each way its turn in each round.
func shortConnections(ctx context.Context, rounds, slice int) ([]shortResult, error) {
	ways := shortWays()
	runs := make([]func() error, len(ways))
	for i, w := range ways {
		run, end, err := w.open(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		runs[i] = run
	}
	rates, cpus := make([][]float64, len(ways)), make([][]float64, len(ways))
	for round := range rounds + 1 {
		for at := range ways {
			i := (at + round) % len(ways) // another is the first in each round
			rate, cpu, err := shortTurn(slice, runs[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			if round > 0 { // the first has what is made once
				rates[i], cpus[i] = append(rates[i], rate), append(cpus[i], cpu)
			}
		}
	}
	all := make([]shortResult, len(ways))
	for i, w := range ways {
		all[i] = shortResult{Way: w.name, Rate: figureOf(rates, i), CPU: figureOf(cpus, i)}
	}
	return all, nil
}

// shortTurn has n connections, some at a time, and returns how many that is in a second, and the microseconds of CPU of
// one.
func shortTurn(n int, run func() error) (rate, cpu float64, err error) {
	var left atomic.Int64
	left.Store(int64(n))
	var failed atomic.Pointer[error]
	used, start := procstat.CPUTime(), time.Now()
	var all sync.WaitGroup
	for range shortWorkers {
		all.Go(func() {
			for left.Add(-1) >= 0 && failed.Load() == nil {
				if err := run(); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return float64(n) / time.Since(start).Seconds(),
		float64((procstat.CPUTime() - used).Nanoseconds()) / 1e3 / float64(n), nil
}

// figureOf sums one way up.
func figureOf(rounds [][]float64, way int) shortFigure {
	median, _, _ := quartiles(rounds[way])
	return shortFigure{median, ratiosOf(rounds[way], rounds[0]), ratiosOf(rounds[way], rounds[1])}
}

func ratiosOf(figures, base []float64) spreadOf {
	ratios := make([]float64, len(figures))
	for i := range ratios {
		ratios[i] = figures[i] / base[i]
	}
	return newSpread(ratios)
}

func shortTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("connection", "in a second", "ratio to plain TCP", "to the same exchange",
		"CPU", "ratio to plain TCP", "to the same exchange"))
	for _, s := range rec.Short {
		b.WriteString(report.MarkdownRow(s.Way, whole(s.Rate.Median), s.Rate.Plain.text(shortRounds),
			s.Rate.Same.text(shortRounds), short(s.CPU.Median)+" us", s.CPU.Plain.text(shortRounds),
			s.CPU.Same.text(shortRounds)))
	}
	return b.String()
}
