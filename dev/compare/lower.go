package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/report"
)

// lower is what idle connections take over a lower layer of our own, both ends in one process.
type lower struct {
	Network string `json:"network"`
	connections
	Lost   int     `json:"lost"`               // ends whose connection was lost before they closed, or then
	Left   float64 `json:"bytes_left_per_end"` // of those that are closed
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

// manyOver sets up n connections, looks at what they take, closes them, and looks at what is left, if need be after
// some time.
func manyOver(ctx context.Context, name string, n int, patience time.Duration) (l lower, err error) {
	c, err := newCrowd(ctx, name)
	if err != nil {
		return l, err
	}
	defer c.close()
	l.Network = name
	var before int64
	if l.connections, before, err = c.measure(ctx, n, func() error { return nil }); err != nil {
		return l, err
	}
	start := time.Now()
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

func lowerTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading(slices.Concat([]string{"over"}, connectionsHead(),
		[]string{"closed in a second", "ends lost", "bytes left of an end"})...))
	for _, l := range rec.Lower {
		b.WriteString(report.MarkdownRow(slices.Concat([]string{l.Network}, l.row(strconv.Itoa(l.Count), l.Count),
			[]string{whole(l.Closed), strconv.Itoa(l.Lost), whole(max(l.Left, 0))})...))
	}
	return b.String()
}
