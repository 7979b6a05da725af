package oooexperiment

import (
	"time"

	"github.com/goiwarp/iwarp/internal/quantile"
)

// durations are of FPDUs, in microseconds: of all, and of those that were whole before all in front of them had come.
type durations struct {
	placed, delivered           []float64
	placedAhead, deliveredAhead []float64
}

func (d *durations) place(t time.Duration, early bool) {
	d.placed = append(d.placed, micros(t))
	if early {
		d.placedAhead = append(d.placedAhead, micros(t))
	}
}

func (d *durations) deliver(t time.Duration, early bool) {
	d.delivered = append(d.delivered, micros(t))
	if early {
		d.deliveredAhead = append(d.deliveredAhead, micros(t))
	}
}

func (d *durations) join(o *durations) {
	d.placed = append(d.placed, o.placed...)
	d.delivered = append(d.delivered, o.delivered...)
	d.placedAhead = append(d.placedAhead, o.placedAhead...)
	d.deliveredAhead = append(d.deliveredAhead, o.deliveredAhead...)
}

func micros(t time.Duration) float64 { return float64(t.Nanoseconds()) / 1000 }

func timesOf(values []float64) Times {
	if len(values) == 0 {
		return Times{}
	}
	return Times{FPDUs: len(values), Median: quantile.Median(values), Most: quantile.Quantile(values, .99)}
}
