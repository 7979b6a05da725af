package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/internal/oooexperiment"
	"github.com/goiwarp/iwarp/perf"
)

// A record is the JSON file: all figures of the tables.
type record struct {
	// Measured says when and where each part was, by the names of cli.parts.
	Measured map[string]when `json:"measured"`

	CC      string        `json:"congestion_control,omitempty"` // of the comparison
	Rounds  int           `json:"rounds,omitempty"`
	Values  []value       `json:"values,omitempty"`
	Missing []missing     `json:"missing,omitempty"`
	Perf    []perf.Report `json:"perf,omitempty"` // one for each congestion control
	Goals   []goalValue   `json:"goals,omitempty"`
	Floors  []goalValue   `json:"floors,omitempty"` // of goals, of which nothing is wanted
	Growth  growth        `json:"growth,omitzero"`
	Short   []shortResult `json:"short_connections,omitempty"`
	Siw     []siwValue    `json:"siw,omitempty"`
	Loss    []lossyLink   `json:"loss,omitempty"`

	Study  []oooexperiment.Report `json:"study,omitempty"`           // of placement ahead of order
	Memory *oooexperiment.Report  `json:"growth_of_study,omitempty"` // of what MPA holds then; nil: not measured
	Lower  []lower                `json:"lower_layers,omitempty"`

	Library *libraryStudy `json:"programs_on_the_library,omitempty"` // nil: not measured

	// Elsewhere is what other machines had, one record for each: see setAside.
	Elsewhere []*record `json:"elsewhere,omitempty"`
}

// A when is a day, the sources that were measured, and the machine.
type when struct {
	Date string `json:"date"`
	checkout.State
	Machine hostinfo.Machine `json:"machine"`
	// how many threads ran or wanted to, on average of the minute before; "" is not known
	Load string `json:"load_before,omitempty"`
}

// A value is what one tool makes of one work, over all rounds.
type value struct {
	Work   string  `json:"work"`
	Tool   string  `json:"tool"`
	Unit   string  `json:"unit"`
	Rounds int     `json:"rounds"` // that it has a figure of
	Median float64 `json:"median"`
	Lower  float64 `json:"lower_quartile"`
	Upper  float64 `json:"upper_quartile"`

	// Ratio is the median of the rounds' ratios to plain TCP, or to iwarp perf: see beside.
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

func newValue(w work, tool string, figures, base byRound) value {
	v := value{Work: w.key, Tool: tool, Unit: w.unit, Rounds: len(figures)}
	v.Median, v.Lower, v.Upper = quartiles(figures.all())
	v.Ratio, v.RatioLower, v.RatioUpper = quartiles(figures.beside(base, func(x, y float64) float64 { return x / y }))
	return v
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
	if err := json.Unmarshal(text, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if slices.Contains(rec.Elsewhere, nil) {
		return nil, fmt.Errorf("%s: a machine without figures", file)
	}
	return rec, nil
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

// now is today, on this machine, with what lies in the directory.
func now(ctx context.Context) (when, error) {
	sources, err := checkout.Here(ctx, 7)
	return when{Date: time.Now().UTC().Format(time.DateOnly), State: sources,
		Machine: hostinfo.This(), Load: loadBefore()}, err
}

// loadBefore is the load of the last minute.
func loadBefore() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// dated says when a part was measured.
func (r *record) dated(part string, at when) {
	if r.Measured == nil {
		r.Measured = make(map[string]when)
	}
	r.Measured[part] = at
}
