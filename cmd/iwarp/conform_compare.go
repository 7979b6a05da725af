package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A judgment is a line of a run's JSON.
type judgment struct {
	ID      string `json:"id"`
	Verdict string `json:"verdict"`
}

// judgments reads those of a file of conform --json, in order. The totals are left out.
func judgments(file string) (all []judgment, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	for lines := json.NewDecoder(f); ; {
		var j judgment
		switch err := lines.Decode(&j); {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s is not the output of iwarp conform --json: %w", file, err)
		case j.ID != "":
			all = append(all, j)
		}
	}
}

// compare prints which cases have another verdict than in an older run. It fails if one fails now that did not then.
func (c *conformCmd) compare(w io.Writer) error {
	if len(c.At) != 1 {
		return usage("conform: --compare: give two files: iwarp conform --compare OLD.json NEW.json")
	}
	before, err := judgments(c.Compare)
	if err != nil {
		return fmt.Errorf("conform: --compare: %w", err)
	}
	now, err := judgments(c.At[0])
	if err != nil {
		return fmt.Errorf("conform: --compare: %w", err)
	}
	d := difference{old: make(map[string]string, len(before))}
	for _, j := range before {
		d.old[j.ID] = j.Verdict
	}
	for _, j := range now {
		d.note(w, j)
	}
	fmt.Fprintf(w, "%d worse, %d better, %d other changes, %d not run any more; %s\n", d.worse, d.better, d.other,
		len(d.old), wording.Count(len(now), "case"))
	if d.worse > 0 {
		return findings("conform: %d worse than in %s", d.worse, c.Compare)
	}
	return nil
}

// A difference is that of two runs.
type difference struct {
	old                  map[string]string // verdicts that are not compared yet, by case
	worse, better, other int
}

// note compares a verdict with the old one, and prints what has changed.
func (d *difference) note(w io.Writer, j judgment) {
	was, known := d.old[j.ID]
	delete(d.old, j.ID)
	kind, count := "changed", &d.other
	switch {
	case was == j.Verdict:
		return
	case j.Verdict == "fail":
		kind, count = "WORSE", &d.worse
	case was == "fail":
		kind, count = "better", &d.better
	}
	*count++
	fmt.Fprintf(w, "%-8s %-34s %s -> %s\n", kind, j.ID, wording.If(known, was, "not run"), j.Verdict)
}
