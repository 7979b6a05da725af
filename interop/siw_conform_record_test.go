//go:build interop

package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A conformRecord is what a case came to, as it is recorded: a line of JSON whose names are those of
// docs/conform-json.md.
type conformRecord struct {
	ID           string   `json:"id"`
	Requirements []string `json:"requirements"`
	Section      string   `json:"section"`
	Verdict      string   `json:"verdict"`
	Why          string   `json:"why,omitempty"`
	Expected     string   `json:"expected,omitempty"`
	Got          string   `json:"got,omitempty"`
}

// recordOf leaves out what differs in each run: how long the case took, and its dialogue.
func recordOf(r *conform.Result) conformRecord {
	c := conformRecord{ID: r.Case.ID, Requirements: r.Case.Requirements, Section: r.Case.Section,
		Verdict: r.Verdict.String()}
	if r.Verdict == conform.Fail {
		c.Expected, c.Got = r.Expected, r.Got
	} else {
		c.Why = r.Why
	}
	return c
}

// passing is what a record has that is other each time: the peer's own addresses,
// and bytes of its memory that siw sends as a pad.
var passing = regexp.MustCompile(`(STag[= ]|TO[= ]|(?:byte|byte)s? of zero; got )(0x)?[0-9a-f]{2}[0-9a-f ]*`)

// lasting is a record without what is other each time.
func (c *conformRecord) lasting() string {
	return passing.ReplaceAllString(fmt.Sprintf("%s %q %q %s %s expected %s; got %s",
		c.ID, c.Requirements, c.Section, c.Verdict, c.Why, c.Expected, c.Got), "$1")
}

// asRecorded reports whether a result is the recorded one.
func (k *conformCheck) asRecorded(r *conform.Result) bool {
	now, then := recordOf(r), k.recorded[r.Case.ID]
	return now.lasting() == then.lasting()
}

// judgedAsRecorded reports whether a result has the recorded verdict.
func (k *conformCheck) judgedAsRecorded(r *conform.Result) bool {
	return r.Verdict.String() == k.recorded[r.Case.ID].Verdict
}

// readConformRecords returns the records of a run, by case.
func readConformRecords(t testing.TB, file string) map[string]conformRecord {
	t.Helper()
	text, err := os.ReadFile(file)
	testrig.Must(t, err)
	records := make(map[string]conformRecord)
	for line := range bytes.Lines(text) {
		var c conformRecord
		testrig.Must(t, json.Unmarshal(line, &c))
		records[c.ID] = c
	}
	return records
}

// writeConformRecords records the results of a run.
func writeConformRecords(t testing.TB, file string, results []conform.Result) {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	for i := range results {
		testrig.Must(t, e.Encode(recordOf(&results[i])))
	}
	testrig.Must(t, os.WriteFile(file, text.Bytes(), 0o644))
}

// TestConformRecords: a result is compared with what -update wrote of it, but for what differs in each run, and every
// file has records.
func TestConformRecords(t *testing.T) {
	of := func(id string, v conform.Verdict, why, expected, got string) conform.Result {
		return conform.Result{Case: conform.Case{ID: id, Requirements: []string{"F01"}, Section: "RFC 5044 4.1"},
			Verdict: v, Why: why, Expected: expected, Got: got}
	}
	before := []conform.Result{
		of("fpdu/pad", conform.Fail, "", "a pad of 2 bytes of zero", "4e 00"),
		of("ddp/stag", conform.Fail, "", "a Terminate", "STag=0x4018a100 <L=1>"),
		of("fpdu/late", conform.Inconclusive, "no answer", "an answer", "nothing"),
		of("fpdu/whole", conform.Pass, "", "", ""),
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	writeConformRecords(t, file, before)
	k := conformCheck{recorded: readConformRecords(t, file)}
	for i := range before {
		if !k.asRecorded(&before[i]) || !k.judgedAsRecorded(&before[i]) {
			t.Errorf("%+v is recorded as %+v", before[i], k.recorded[before[i].Case.ID])
		}
	}
	for _, test := range []struct {
		now            conform.Result
		same, asJudged bool
	}{
		{of("fpdu/pad", conform.Fail, "", "a pad of 2 bytes of zero", "4c e0"), true, true},
		{of("ddp/stag", conform.Fail, "", "a Terminate", "STag=0x77 <L=1>"), true, true},
		{of("ddp/stag", conform.Fail, "", "a Terminate", "STag=0x77 <L=0>"), false, true},
		{of("ddp/stag", conform.Pass, "", "", ""), false, false},
		{of("fpdu/late", conform.Inconclusive, "another reason", "", ""), false, true},
		{of("fpdu/whole", conform.Fail, "", "a Terminate", "nothing"), false, false},
		{of("fpdu/new", conform.Pass, "", "", ""), false, false},
	} {
		same, judged := k.asRecorded(&test.now), k.judgedAsRecorded(&test.now)
		if same != test.same || judged != test.asJudged {
			t.Errorf("%+v: as recorded %v, with its verdict %v", test.now, same, judged)
		}
	}
	for _, run := range conformRuns {
		if n := len(readConformRecords(t, run.file)); n < 100 {
			t.Errorf("%s has %d records", run.file, n)
		}
	}
}
