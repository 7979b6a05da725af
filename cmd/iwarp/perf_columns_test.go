package main

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// numbered gives each number in a struct, and in those in it, a value of its own, and returns their fields.
func numbered(v reflect.Value, fields map[int]string) {
	for i := range v.NumField() {
		n := 1001 + len(fields)
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			numbered(f, fields)
			continue
		case reflect.Float64:
			f.SetFloat(float64(n))
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(n))
		default:
			continue
		}
		fields[n] = v.Type().Field(i).Name
	}
}

// TestAllColumns: with --all-columns each figure of a result is in its row.
func TestAllColumns(t *testing.T) {
	var r perf.Result
	fields := make(map[int]string)
	r.TCP = new(perf.Figures)
	numbered(reflect.ValueOf(&r).Elem(), fields)
	numbered(reflect.ValueOf(r.TCP).Elem(), fields)
	r.Quartiles = map[string][2]float64{"ratio_bw": {2001, 2002}}
	var row []string
	for _, c := range perfColumns(nil, true, true, false, true) {
		row = append(row, c.text(r))
	}
	text := strings.Join(row, " ")
	fields[2001], fields[2002] = "a quartile", "a quartile"
	for n, name := range fields {
		if name == "Ahead" { // in per cent
			n *= 100
		}
		if !regexp.MustCompile(`\b`+strconv.Itoa(n)+`\b`).MatchString(text) && name != "Op" {
			t.Errorf("%s (%d) is not in the row: %s", name, n, text)
		}
	}
	if len(fields) < 50 {
		t.Errorf("%d figures in a result", len(fields))
	}
}

// TestPerfFooting: what the startup came to and what was measured with are told apart, if they differ.
func TestPerfFooting(t *testing.T) {
	report := &perf.Report{Negotiated: perf.Negotiated{EMSS: 32768, MULPDU: 32762},
		Results: []perf.Result{{EMSS: 65483, MULPDU: 64766}}}
	if got := footing(report); !strings.Contains(got, "have become 65483 and 64766 bytes") {
		t.Errorf("of an EMSS that has grown: %s", got)
	}
	report.Results[0].EMSS, report.Results[0].MULPDU = 32768, 32762
	if got := footing(report); strings.Contains(got, "become") {
		t.Errorf("of an EMSS that has stayed: %s", got)
	}
	var out strings.Builder
	p := (&perfCmd{networkFlag: networkFlag{Network: "sctp"}}).table(&out)
	report.Negotiated = perf.Negotiated{MULPDU: 1426}
	if p.explain(report); !strings.Contains(out.String(), "The MULPDU of the connections has become 32762 bytes") {
		t.Errorf("over SCTP: %s", out.String())
	}
}

// TestPerfCalls: where system calls were not counted, it is said why.
func TestPerfCalls(t *testing.T) {
	report := &perf.Report{Options: perf.Options{Duration: perf.DefaultDuration}, Results: make([]perf.Result, 2)}
	for i := range report.Results {
		report.Results[i].Pairs = perf.Pairs{BWPairs: 40, LatPairs: 40}
	}
	if got := footing(report); !strings.Contains(got, "calls: not counted, as that takes Linux, root") {
		t.Errorf("of a run that would count them: %s", got)
	}
	report.Options.Duration = 1
	if got := footing(report); !strings.Contains(got, "calls: not counted, as the run is short") {
		t.Errorf("of a short run: %s", got)
	}
	report.Results[0].Calls, report.Results[1].Calls = 1, 2
	if got := footing(report); strings.Contains(got, "calls:") {
		t.Errorf("where they were counted: %s", got)
	}
}

// TestPerfLate: where a 99th percentile was made of too few round trips to be one, the row has a dash, and it is said
// why.
func TestPerfLate(t *testing.T) {
	with := perf.Figures{Latencies: perf.Latencies{LatencyIterations: 300, P99: 1234}}
	without := perf.Figures{Latencies: perf.Latencies{LatencyIterations: 299}}
	for _, test := range []struct {
		ours, tcp perf.Figures
		late      string
		told      bool
	}{{with, with, "1234.00 1234.00", false}, {with, without, "1234.00 -", true}, {without, with, "- 1234.00", true}} {
		r := perf.Result{Figures: test.ours, TCP: &test.tcp}
		var late []string
		for _, c := range perfColumns(nil, true, false, false, false) {
			if c.head == "99%" {
				late = append(late, c.text(r))
			}
		}
		told := strings.Contains(footing(&perf.Report{Results: []perf.Result{r}}),
			" 99%: of fewer than 300 round trips there is none")
		if got := strings.Join(late, " "); got != test.late || told != test.told {
			t.Errorf("99 %%: %q, want %q; explained: %v", got, test.late, told)
		}
	}
}

// TestPerfPairs: pairs are counted for each quantity, as the limit for a verdict is; and without plain TCP there is no
// word of ratios.
func TestPerfPairs(t *testing.T) {
	row := perf.Result{Pairs: perf.Pairs{BWPairs: 50, LatPairs: 40, BWDropped: 48}}
	report := &perf.Report{Options: perf.Options{Duration: perf.DefaultDuration}, Results: []perf.Result{row, row}}
	if got := footing(report); !strings.Contains(got,
		"(20 or more for each quantity, 180 in all, of which 96 were disturbed and dropped)") {
		t.Error(got)
	}
	report.Options.KeepDisturbed = true
	if got := footing(report); !strings.Contains(got, "(20 for each quantity, disturbed ones too)") {
		t.Error(got)
	}
	report.Options.NoBaseline = true
	var out strings.Builder
	p := perfTable{out: &out, over: new(perfCmd).over()}
	if p.explain(report); strings.Contains(out.String(), "ratio") ||
		!strings.Contains(out.String(), "waited least for a CPU.\n") {
		t.Error(out.String())
	}
}

// footing is what is printed beneath the table over TCP.
func footing(report *perf.Report) string {
	var out strings.Builder
	c := perfCmd{TCP: "on"}
	c.table(&out).explain(report)
	return out.String()
}
