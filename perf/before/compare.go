package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/spread"
)

// A row is what the rounds have found: ratios of processor time.
type row struct{ now, itself []float64 }

// cells are what follows the name in a row of the table: medians and quartiles.
func (r row) cells() (all []string) {
	for _, v := range [][]float64{r.now, r.itself} {
		lower, upper := spread.Quartiles(v)
		all = append(all, fmt.Sprintf("%.2f", spread.Median(v)), fmt.Sprintf("%.2f - %.2f", lower, upper))
	}
	return all
}

// compare runs both in the order before, today, today, before, so that what grows or shrinks with time favors none.
func compare(rounds int, then, now run) (r row, err error) {
	times, err := enough(then)
	if err != nil {
		return r, err
	}
	for range rounds {
		var took [4]time.Duration
		for i, run := range []run{then, now, now, then} {
			if took[i], err = run(times); err != nil {
				return r, err
			}
		}
		r.now = append(r.now, ratio(took[1], took[0]), ratio(took[2], took[3]))
		r.itself = append(r.itself, ratio(took[3], took[0]))
	}
	return r, nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// Bounds of how often benchmarks are carried out: long enough that starting the program does not count.
const (
	longEnough = 500 * time.Millisecond
	most       = 1 << 30
)

// errTooShort is of a pattern that no benchmark has, for one.
var errTooShort = errors.New("the benchmarks take no time: is there one of that name, then and now?")

// enough finds how often takes long enough.
func enough(r run) (times int, err error) {
	for times = 1; times < most; times *= 4 {
		took, err := r(times)
		if err != nil || took >= longEnough {
			return times, err
		}
	}
	return 0, errTooShort
}
