package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/internal/oooexperiment"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestChartsTell on which machine they were measured, and when, each of its own part of the record.
func TestChartsTell(t *testing.T) {
	rec := &record{Values: []value{{Work: "latency-64", Median: 1}},
		Library: &libraryStudy{Values: []beside{{value: value{Work: "latency-64", Median: 1}}}}}
	rec.dated("tools", when{Date: "2026-11-28", Machine: hostinfo.Machine{CPU: "EPYC", CPUs: 2}})
	rec.dated("library", when{Date: "2026-11-27", Machine: hostinfo.Machine{CPU: "Xeon(R)", CPUs: 64}})
	rec.dated("study", when{Date: "2026-11-22", Machine: hostinfo.Machine{CPU: "EPYC", CPUs: 4}})
	rec.Study = []oooexperiment.Report{{Results: []oooexperiment.Result{{Way: "in order"}}}}
	charts, err := toolCharts(rec)
	testrig.Must(t, err)
	ofStudy, err := studyCharts(rec)
	testrig.Must(t, err)
	maps.Copy(charts, ofStudy)
	for name, want := range map[string]string{
		"latency-64":         ">2 CPUs, EPYC; 2026-11-28</text>",
		"library-latency-64": ">64 CPUs, Xeon(R); 2026-11-27</text>",
		"ahead-time":         ">4 CPUs, EPYC; 2026-11-22</text>",
	} {
		before, _, ok := strings.Cut(string(charts[name]), want)
		if style := before[max(0, strings.LastIndex(before, "<text")):]; !ok || strings.Contains(style, ",0.0)") {
			t.Errorf("%s does not say, or not to be seen: %q: %s", name, want, style)
		}
	}
}
