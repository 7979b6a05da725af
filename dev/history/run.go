package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/perf"
)

// A run is one line of the history.
type run struct {
	Date string `json:"date"`
	checkout.State
	hostinfo.Machine
	CC   string `json:"congestion_control"`
	Note string `json:"note,omitempty"`
	// Disturbed is the part of the pairs of slices that the rest of the machine disturbed, and that were dropped; Busy
	// that it was so busy that the run says little of the commit.
	Disturbed float64 `json:"disturbed"`
	Busy      bool    `json:"busy,omitempty"`
	Works     []work  `json:"works"`
}

// A work is one operation at one size, and iWARP's figures divided by plain TCP's in the same run.
type work struct {
	Op   perf.Op `json:"op"`
	Size int     `json:"size"`
	perf.Ratios
}

// A run is called busy where more of its pairs are disturbed, or of its ratios inconclusive, than these parts.
const (
	busyDisturbed    = 0.5
	busyInconclusive = 0.25
)

// newRun takes the ratios of a report.
func newRun(text []byte) (*run, error) {
	var report perf.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	if report.Interrupted || len(report.Results) == 0 {
		return nil, errors.New("the run was interrupted, or has no results")
	}
	r := &run{CC: report.Negotiated.CC}
	pairs, dropped, ratios, inconclusive := 0, 0, 0, 0
	for _, result := range report.Results {
		if result.TCP == nil {
			return nil, errors.New("plain TCP was not measured: there are no ratios")
		}
		r.Works = append(r.Works, work{result.Op, result.Size, result.Ratios})
		pairs += result.BWPairs + result.LatPairs
		dropped += result.BWDropped + result.LatDropped
		ratios += len(result.Quartiles)
		inconclusive += len(result.Inconclusive)
	}
	r.Disturbed = share(dropped, pairs)
	r.Busy = r.Disturbed > busyDisturbed || share(inconclusive, ratios) > busyInconclusive
	return r, nil
}

func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// appendRun adds a line to the history. What is there stays as it is.
func appendRun(dir string, r *run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(historyFile(dir), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func historyFile(dir string) string { return filepath.Join(dir, "history.jsonl") }

// readHistory returns all runs, in the order in which they were added.
func readHistory(dir string) (all []run, err error) {
	text, err := os.ReadFile(historyFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	for {
		var r run
		err := decoder.Decode(&r)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: run %d: %w", historyFile(dir), len(all)+1, err)
		}
		all = append(all, r)
	}
}
