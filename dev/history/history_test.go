package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/dev/internal/rig"
	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/perf"
)

// measured is a report of two works, of whose 8 ratios so many are inconclusive, and of whose 40 pairs so many were
// dropped.
func measured(t *testing.T, inconclusive, dropped int) []byte {
	t.Helper()
	keys := []string{"ratio_bw", "ratio_lat", "ratio_cpu", "ratio_p99"}
	ratios := perf.Ratios{RatioBW: 2.5, RatioLat: 1.25, RatioCPU: 0.5, RatioP99: 1, Quartiles: map[string][2]float64{}}
	for _, key := range keys {
		ratios.Quartiles[key] = [2]float64{ratios.Ratio(key) - 0.25, ratios.Ratio(key) + 0.25}
	}
	quiet, busy := ratios, ratios
	busy.Inconclusive = keys[:inconclusive]
	pairs := perf.Pairs{BWPairs: 10, LatPairs: 10}
	tcp := new(perf.Figures)
	first := perf.Result{Op: perf.Send, Size: 64, Ratios: quiet, Pairs: pairs, TCP: tcp}
	second := perf.Result{Op: perf.Write, Size: 64, Ratios: busy, Pairs: pairs, TCP: tcp}
	second.BWDropped = dropped
	text, err := json.Marshal(perf.Report{Negotiated: perf.Negotiated{Dialect: mpa.DialectRFC6581, CC: "reno"},
		Results: []perf.Result{first, second}})
	testrig.Must(t, err)
	return text
}

// TestAdd: a run is added after those that are there, which stay as they are, and the document has a row for each.
func TestAdd(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "README.md")
	testrig.Must(t, os.WriteFile(document, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600))
	for i, text := range [][]byte{measured(t, 0, 0), measured(t, 3, 0)} {
		r, err := newRun(text)
		testrig.Must(t, err)
		r.Date, r.Commit, r.Modified, r.Machine, r.Note = "2026-02-03", "0123456789ab", i == 1,
			hostinfo.Machine{CPU: "a | b", CPUs: 2, Kernel: "linux 6", Go: "go1.26"}, "a note"
		testrig.Must(t, appendRun(dir, r))
	}
	testrig.Must(t, render(dir))
	got, err := os.ReadFile(document)
	testrig.Must(t, err)
	for _, row := range []string{
		"| 1 | 2026-02-03 | `0123456789ab` | 2 CPUs, a \\| b; linux 6; go1.26 | reno | 0 % | a note |\n",
		"| 2 | 2026-02-03 | `0123456789ab`, changed | 2 CPUs, a \\| b; linux 6; go1.26 | reno | 0 % | busy machine; a note |\n",
		"\n### Bandwidth, more is better\n\n",
		"| 1 | 2.50 (2.25 - 2.75) | - | - | 2.50 (2.25 - 2.75) | - | - | - | - |\n",
		"| 2 | 2.50 (2.25 - 2.75) | - | - | busy | - | - | - | - |\n",
		"| 2 | 0.50 (0.25 - 0.75) | - | - | busy | - | - | - | - |\n",
	} {
		if !strings.Contains(string(got), row) {
			t.Errorf("there is no %q in\n%s", row, got)
		}
	}
	if !strings.HasPrefix(string(got), "before\n"+begin) || !strings.HasSuffix(string(got), end+"after\n") ||
		strings.Contains(string(got), "old") {
		t.Errorf("%s", got)
	}
}

// TestAddChanged: a run that is added names the commit, and says so where sources were changed beside it.
func TestAddChanged(t *testing.T) {
	dir := rig.Repository(t, "main.go")
	rig.WriteBelow(t, dir, "README.md", begin+end)
	testrig.Must(t, os.WriteFile("perf.json", measured(t, 0, 0), 0o600))
	testrig.Must(t, (&addCmd{File: "perf.json"}).Run(&cli{Dir: "."}))
	rig.WriteBelow(t, dir, "main.go", "changed\n")
	testrig.Must(t, (&addCmd{File: "perf.json"}).Run(&cli{Dir: "."}))
	history, err := readHistory(".")
	testrig.Must(t, err)
	if len(history) != 2 || len(history[0].Commit) != 12 || history[0].Modified ||
		history[1].Commit != history[0].Commit || !history[1].Modified {
		t.Errorf("%+v", history)
	}
}

// TestBusy: a run is marked from a bound on.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		inconclusive, dropped int
		disturbed             float64
		busy                  bool
	}{{0, 0, 0, false}, {2, 0, 0, false}, {3, 0, 0, true}, {0, 20, 0.5, false}, {0, 21, 0.525, true}} {
		r, err := newRun(measured(t, c.inconclusive, c.dropped))
		testrig.Must(t, err)
		if r.Busy != c.busy || r.Disturbed != c.disturbed {
			t.Errorf("%+v: busy %v, disturbed %v", c, r.Busy, r.Disturbed)
		}
	}
}

// TestRefused: what has no ratios is no run.
func TestRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":     "Send 64",
		"no results":  `{}`,
		"interrupted": `{"interrupted": true, "results": [{"op": "Send", "size": 64, "tcp": {}}]}`,
		"without TCP": `{"results": [{"op": "Send", "size": 64}]}`,
		"no such op":  `{"results": [{"op": "Sent", "size": 64, "tcp": {}}]}`,
	} {
		if r, err := newRun([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	dir := t.TempDir()
	testrig.Must(t, os.WriteFile(historyFile(dir), []byte(`{"date": "2026-02-03", "host": "name"}`), 0o600))
	if all, err := readHistory(dir); err == nil {
		t.Errorf("a field that is not known is read: %+v", all)
	}
}

// TestDocument: the tables of docs/bench are what its lines say; and those say when, at which commit and on what,
// without a path.
func TestDocument(t *testing.T) {
	const dir = "../../docs/bench"
	history, err := readHistory(dir)
	testrig.Must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	testrig.Must(t, err)
	if !strings.Contains(string(text), begin+tables(history)+end) {
		t.Error("docs/bench/README.md is not what history.jsonl says: go -C dev run ./history render")
	}
	if len(history) == 0 {
		t.Fatal("there is no run")
	}
	for i, r := range history {
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(r.Date) ||
			!regexp.MustCompile(`^[0-9a-f]{12,}$`).MatchString(r.Commit) || r.CPUs < 1 || len(r.Works) == 0 {
			t.Errorf("run %d: %+v", i+1, r)
		}
		if strings.Contains(r.Kernel+r.CPU+r.Go+r.Note, "/") {
			t.Errorf("run %d names a path: %+v", i+1, r.Machine)
		}
	}
}
