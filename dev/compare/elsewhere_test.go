package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/dev/internal/rig"
	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestElsewhere: what another machine had stays beside what is measured anew, once, and goes when that machine measures
// again.
func TestElsewhere(t *testing.T) {
	epyc, xeon := hostinfo.Machine{CPU: "EPYC", CPUs: 2, Kernel: "linux 1"}, hostinfo.Machine{CPU: "Xeon", CPUs: 2}
	rec := new(record)
	measure := func(m hostinfo.Machine, found float64) {
		rec.setAside("goals", m)
		rec.Goals = []goalValue{{goal{"64 B Read", "reno", "latency", 1.2, true}, 7, spreadOf{found, found, found}}}
		rec.dated("goals", when{Date: fmt.Sprint(found), Machine: m})
	}
	for _, step := range []struct {
		on      hostinfo.Machine
		found   float64
		columns string
	}{
		{xeon, 1.5, "| at most 1.20 | 1.50 (1.50 - 1.50) | missed | - |\n"},
		{xeon, 1.4, "| at most 1.20 | 1.40 (1.40 - 1.40) | missed | - |\n"},
		{epyc, 1.0, "| at most 1.20 | 1.00 (1.00 - 1.00) | met | - | 1.40 (1.40 - 1.40) | missed | - |\n"},
		{hostinfo.Machine{CPU: "EPYC", CPUs: 2, Kernel: "linux 2"}, 1.1,
			"| at most 1.20 | 1.10 (1.10 - 1.10) | met | - | 1.40 (1.40 - 1.40) | missed | - |\n"},
		{xeon, 1.3, "| at most 1.20 | 1.30 (1.30 - 1.30) | missed | - | 1.10 (1.10 - 1.10) | met | - |\n"},
		{hostinfo.Machine{CPU: "EPYC", CPUs: 64}, 0.9,
			"| at most 1.20 | 0.90 (0.90 - 0.90) | met | - | 1.10 (1.10 - 1.10) | met | - | 1.30 (1.30 - 1.30) | missed | - |\n"},
	} {
		measure(step.on, step.found)
		text := goalsText(rec)
		if !strings.Contains(text, step.columns) {
			t.Errorf("after %+v, no %q in\n%s", step, step.columns, text)
		}
		if got, want := strings.Count(text, "Measured on "), 1+len(rec.Elsewhere); got != want {
			t.Errorf("%d lines say when, want %d", got, want)
		}
	}
}

// TestElsewhereOnce: parts that one machine has measured at different times stay in one record.
func TestElsewhereOnce(t *testing.T) {
	rec := &record{Growth: growth{Connections: []connections{{Count: crowded, PerEnd: 9 << 10}}},
		Goals: []goalValue{{goal: goal{Work: "64 B Read"}}}}
	for _, part := range []string{"growth", "goals"} {
		rec.dated(part, when{Date: part, Machine: hostinfo.Machine{CPU: "Xeon"}})
	}
	for _, part := range []string{"growth", "goals"} {
		rec.setAside(part, hostinfo.Machine{CPU: "EPYC"})
	}
	if n := len(rec.Elsewhere); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// TestDamagedRecord: figures that cannot be read are told of with their file, and nothing is drawn from none.
func TestDamagedRecord(t *testing.T) {
	for text, want := range map[string]string{
		"{":                      "unexpected end",
		`{"elsewhere":[null]}`:   "a machine without figures",
		`{}`:                     "has no figures",
		`null`:                   "has no figures",
		`{"measured":{"perf":1}`: "unexpected end",
	} {
		dir := t.TempDir()
		rig.WriteBelow(t, dir, "performance.md", "as it was\n")
		rig.WriteBelow(t, dir, "performance/tables.md", "as it was\n")
		rig.WriteBelow(t, dir, "performance/compare.json", text)
		err := (&cli{Docs: dir, Rounds: 1, Render: true}).run(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "compare.json") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestElsewhereLacks: a goal that one of the machines did not measure has its row, and its cells, all the same. How
// many connections were idle makes no other goal, and what is wanted of short connections depends on plain TCP.
func TestElsewhereLacks(t *testing.T) {
	figure := func(work string) goalValue {
		return goalValue{goal{work, "reno", "latency", 1.2, true}, 7, spreadOf{1, 1, 1}}
	}
	short := func(plain, ours float64) []shortResult {
		return []shortResult{{Rate: shortFigure{Median: plain}}, {Rate: shortFigure{Median: ours}}}
	}
	rec := &record{Goals: []goalValue{figure("64 B Read"), figure("100 busy, 4600 idle ones beside")},
		Short: short(14000, 7500)}
	for _, part := range []string{"goals", "short connections"} {
		rec.dated(part, when{Machine: hostinfo.Machine{CPU: "Xeon"}})
		rec.setAside(part, hostinfo.Machine{CPU: "EPYC"})
		rec.dated(part, when{Machine: hostinfo.Machine{CPU: "EPYC"}})
	}
	rec.Goals, rec.Short = []goalValue{figure("1 MiB Write"),
		figure("100 busy, 9480 idle ones beside")}, short(20000, 7500)
	text := goalsTable(rec)
	for _, want := range []string{
		"| wanted | found on EPYC |  | floor | found on Xeon |  | floor |\n",
		"| 1 MiB Write | reno | latency | at most 1.20 | 1.00 (1.00 - 1.00) | met | - | - | not measured | - |\n",
		"| 64 B Read | reno | latency | at most 1.20 | - | not measured | - | 1.00 (1.00 - 1.00) | met | - |\n",
		"| 100 busy, 9480 idle ones beside | reno | latency | at most 1.20 | 1.00 (1.00 - 1.00) | met | - | 1.00 (1.00 - 1.00) | met | - |\n",
		"| short connections |  | thousands in a second | at least 8.00 | 7.50 | missed | - | 7.50 | met (at least 7.00) | - |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "4600") {
		t.Errorf("two rows of one goal:\n%s", text)
	}
}

// TestElsewhereParts: of another machine stays what iWARP costs there beside others, each part with its date and
// without the rest.
func TestElsewhereParts(t *testing.T) {
	marks := map[string]string{
		"tools": "UCX", "perf": "995", "goals": "64 B Read", "floors": "1 MiB Send", "growth": "4711", "short connections": "a short one",
		"library": "programs_on_the_library",
	}
	for _, p := range (&cli{}).parts() {
		rec := &record{
			CC: "bbr", Rounds: 7, Values: []value{{Tool: "UCX"}},
			Perf:   []perf.Report{{Results: []perf.Result{{Size: 995}}}},
			Goals:  []goalValue{{goal: goal{Work: "64 B Read"}}},
			Floors: []goalValue{{goal: goal{Work: "1 MiB Send"}}},
			Growth: growth{Connections: []connections{{Count: 4711}}}, Short: []shortResult{{Way: "a short one"}},
			Library: new(libraryStudy),
		}
		rec.dated(p.name, when{Date: "a day", Machine: hostinfo.Machine{CPU: "Xeon"}})
		rec.setAside(p.name, hostinfo.Machine{CPU: "EPYC"})
		mark, kept := marks[p.name]
		if got := len(rec.with(p.name)) == 1; got != kept {
			t.Errorf("%s is kept: %v, want %v", p.name, got, kept)
			continue
		}
		text, err := json.Marshal(rec.Elsewhere)
		testrig.Must(t, err)
		for other, its := range marks {
			if got, want := strings.Contains(string(text), its), other == p.name; got != want {
				t.Errorf("%s, which leaves %q: %q is there: %v", p.name, mark, its, got)
			}
		}
		if got := strings.Count(rec.everywhere(p.name, func(*record) string { return "" }),
			"Measured on a day"); kept && got != 2 {
			t.Errorf("%s is told of %d machines, want 2", p.name, got)
		}
	}
}
