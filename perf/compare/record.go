package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/goiwarp/iwarp/internal/machine"
	"github.com/goiwarp/iwarp/internal/spread"
	"github.com/goiwarp/iwarp/internal/study"
	"github.com/goiwarp/iwarp/perf"
)

// A record is the JSON file: all figures of docs/performance.md.
type record struct {
	Machine place         `json:"machine"`
	CC      string        `json:"congestion_control"` // of the comparison
	Rounds  int           `json:"rounds"`
	Values  []value       `json:"values"`
	Missing []missing     `json:"missing"`
	Perf    []perf.Report `json:"perf"` // one for each congestion control
	Growth  growth        `json:"growth"`
	Short   []shortResult `json:"short_connections"`
	Siw     []siwValue    `json:"siw"`

	Study  []study.Report `json:"study"`           // of placement ahead of order
	Memory *study.Report  `json:"growth_of_study"` // of what MPA holds then; nil: not measured
	Lower  []lower        `json:"lower_layers"`
}

// A place is where and when it was measured.
type place struct {
	Date string `json:"date"`
	machine.Machine
}

// A value is what one tool makes of one work, over all rounds.
type value struct {
	Work   string  `json:"work"`
	Tool   string  `json:"tool"`
	Unit   string  `json:"unit"`
	Rounds int     `json:"rounds"`
	Median float64 `json:"median"`
	Lower  float64 `json:"lower_quartile"`
	Upper  float64 `json:"upper_quartile"`

	// Ratio is the median of the rounds' ratios to plain TCP.
	Ratio      float64 `json:"ratio"`
	RatioLower float64 `json:"ratio_lower_quartile"`
	RatioUpper float64 `json:"ratio_upper_quartile"`
}

// missing is a tool that is not in the tables, or a work that it did not do.
type missing struct {
	Tool   string `json:"tool"`
	Work   string `json:"work,omitempty"`
	Reason string `json:"reason"`
}

func newValue(w work, tool string, figures, base []float64) value {
	v := value{Work: w.key, Tool: tool, Unit: w.unit, Rounds: len(figures)}
	v.Median, v.Lower, v.Upper = quartiles(figures)
	var ratios []float64
	for i := range min(len(figures), len(base)) {
		ratios = append(ratios, figures[i]/base[i])
	}
	v.Ratio, v.RatioLower, v.RatioUpper = quartiles(ratios)
	return v
}

// quartiles returns the median and the quartiles, and zeros of none.
func quartiles(values []float64) (median, lower, upper float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	lower, upper = spread.Quartiles(values)
	return spread.Median(values), lower, upper
}

// readRecord returns an empty record if there is no file yet.
func readRecord(file string) (*record, error) {
	rec := new(record)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, nil
	}
	if err != nil {
		return nil, err
	}
	return rec, json.Unmarshal(text, rec)
}

func (r *record) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func thisMachine() place {
	return place{Date: time.Now().UTC().Format(time.DateOnly), Machine: machine.This()}
}
