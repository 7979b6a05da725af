package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/internal/oooexperiment"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

const docs = "../../docs"

// TestDocument holds that every table and chart of the pages is what the JSON file says.
func TestDocument(t *testing.T) {
	rec, err := readRecord(filepath.Join(docs, "performance", "compare.json"))
	testrig.Must(t, err)
	for page, tables := range (&cli{Docs: docs}).pages(rec) {
		text, err := os.ReadFile(page)
		testrig.Must(t, err)
		for name, table := range tables {
			same, err := replaced(string(text), name, table)
			testrig.Must(t, err)
			if same != string(text) {
				t.Errorf("%s: table %s is not that of the JSON file: run go -C dev run ./compare --render", page, name)
			}
		}
	}
	shown := shownCharts(t)
	charts, err := studyCharts(rec)
	testrig.Must(t, err)
	if len(charts) == 0 {
		t.Error("no chart of the study")
	}
	ofTools, err := toolCharts(rec)
	testrig.Must(t, err)
	if got, want := len(ofTools), len(works())+len(libraryWorks()); got != want {
		t.Errorf("%d charts of tools, want %d", got, want)
	}
	maps.Copy(charts, ofTools)
	for name, want := range charts {
		got, err := os.ReadFile(filepath.Join(docs, "performance", name+".svg"))
		testrig.Must(t, err)
		if string(got) != string(want) {
			t.Errorf("chart %s is not that of the JSON file: run go -C dev run ./compare --render", name)
		}
		if !strings.Contains(shown, "performance/"+name+".svg)") {
			t.Errorf("chart %s is in no document", name)
		}
	}
}

// shownCharts returns the two documents that show charts.
func shownCharts(t *testing.T) string {
	t.Helper()
	forUsers, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	testrig.Must(t, err)
	forDevelopers, err := os.ReadFile(filepath.Join(docs, "dev", "performance.md"))
	testrig.Must(t, err)
	return string(forUsers) + string(forDevelopers)
}

// TestStudyIsToday: what the JSON file has of iwarp study is what the next run makes, so that what the document says
// about those rows stays true.
func TestStudyIsToday(t *testing.T) {
	rec, err := readRecord(filepath.Join(docs, "performance", "compare.json"))
	testrig.Must(t, err)
	var want []string
	for _, w := range compared() {
		want = append(want, w.Name)
	}
	var rows, known []string
	for _, w := range oooexperiment.Growth {
		rows = append(rows, w.Name)
	}
	for _, r := range rec.Memory.Results {
		known = append(known, r.Way)
	}
	if !slices.Equal(rows, known) || rec.Memory.Config != memoryStudy() {
		t.Errorf("%+v: %q, want %+v: %q", rec.Memory.Config, known, memoryStudy(), rows)
	}
	if len(rec.Study) != len(studies()) {
		t.Fatalf("%d studies, want %d", len(rec.Study), len(studies()))
	}
	for i, cfg := range studies() {
		var got []string
		for _, r := range rec.Study[i].Results {
			got = append(got, r.Way)
		}
		if !slices.Equal(got, want) || rec.Study[i].Config != cfg {
			t.Errorf("%+v: %q, want %+v: %q", rec.Study[i].Config, got, cfg, want)
		}
	}
}

// TestDocumentHasNoOtherTables looks for markers that nothing fills.
func TestDocumentHasNoOtherTables(t *testing.T) {
	for page, tables := range (&cli{Docs: docs}).pages(new(record)) {
		text, err := os.ReadFile(page)
		testrig.Must(t, err)
		if got, want := strings.Count(string(text), "<!-- made by dev/compare: "), len(tables); got != want {
			t.Errorf("%s: %d places for tables, and %d tables", page, got, want)
		}
	}
}

// TestVerdictsText counts verdicts on each machine, those of the median with the others.
func TestVerdictsText(t *testing.T) {
	of := func(work string, median, lower, upper float64) goalValue {
		return goalValue{goal{work, "reno", "latency", 1.2, true}, 7, spreadOf{median, lower, upper}}
	}
	rec := &record{Goals: []goalValue{of("a", 1, 1, 1), of("b", 1.1, 1.05, 1.21), of("c", 1.3, 1.3, 1.3),
		of("d", 1, 1, 2)}}
	rec.dated("goals", when{Date: "a day", Machine: hostinfo.Machine{CPU: "EPYC"}})
	other := &record{Goals: []goalValue{of("a", 1.3, 1.3, 1.3)}}
	other.dated("goals", when{Date: "another", Machine: hostinfo.Machine{CPU: "Xeon"}})
	rec.Elsewhere = []*record{other}
	for _, want := range []string{
		"- 4 goals on EPYC (a day, commit ): 2 met, 1 missed, 1 inconclusive.\n",
		"- 4 goals on Xeon (another, commit ): 1 missed, 3 not measured.\n",
	} {
		if got := verdictsText(rec); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReplaced(t *testing.T) {
	const doc = "a\n<!-- made by dev/compare: x -->\nold\n<!-- end of x -->\nb\n"
	got, err := replaced(doc, "x", "new\n")
	if want := strings.Replace(doc, "old", "new", 1); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := replaced(doc, "y", "new\n"); err == nil {
		t.Error("a table without a place is no error")
	}
}

// TestParse reads what the programs print.
func TestParse(t *testing.T) {
	all := otherPrograms(time.Second)
	for _, test := range []struct {
		tool      *program
		work, out string
		want      float64
	}{
		{all[0], "bandwidth-1m", `{"end": {"sum_received": {"bits_per_second": 8388608000}}}`, 1000},
		{all[0], "rate-64", `{"end": {"sum_received": {"bits_per_second": 512000000}}}`, 1},
		{all[1], "latency-64", "noise\niterations,50.0_percentile_lat,avg_lat\n3000,9.5,517.4\n", 9.5},
		{all[1], "rate-64", "iterations,overall_bw,overall_mr\n3000,0.03,250000\n", 0.25},
		{all[1], "bandwidth-1m", "iterations,overall_bw,overall_mr\n300,1.5,1500\n", 1500},
		{all[2], "latency-64", "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n64      2k      =2k      250k        0.05s      5.00      12.50       0.08\n", 12.5},
	} {
		w := workOf(test.work)
		x, err := test.tool.parse(w, []byte(test.out))
		if got := w.figure(x); err != nil || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s, %s: got %v, %v, want %v", test.tool.label, test.work, got, err, test.want)
		}
		for _, bad := range []string{"", "{}", "a,b\n", "x\ny\n", `{"error": "no"}`} {
			if _, err := test.tool.parse(w, []byte(bad)); err == nil {
				t.Errorf("%s: %q is no error", test.tool.label, bad)
			}
		}
	}
}

// TestPerftest has perftest's arguments and tables for each work that it has.
func TestPerftest(t *testing.T) {
	p := perftest("iwarp", time.Second)
	const rates = "---\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n%s\n---\n"
	const times = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n%s\n"
	for _, test := range []struct {
		work, program, out string
		want               float64
	}{
		{"latency-64", "ib_send_lat", fmt.Sprintf(times, "64 20000 4.81 903.1 6.40 6.91"), 6.4},
		{least, "ib_send_lat", fmt.Sprintf(times, "64 20000 4.81 903.1 6.40 6.91"), 4.81},
		{"rate-64", "ib_send_bw", fmt.Sprintf(rates, "64 200000 60.1 54.2 0.888"), 0.888},
		{"bandwidth-1m", "ib_write_bw", fmt.Sprintf(rates, "1048576 2000 6890.39 3682.73 0.0036827"), 3682.7},
	} {
		w := workOf(test.work)
		server, client, ok := p.command(w, 4711, "")
		if !ok || server[1] != test.program || !slices.Equal(client, append(slices.Clone(server), loopback)) {
			t.Errorf("%s: %q, %q, %v", test.work, server, client, ok)
		}
		x, err := p.parse(w, []byte(test.out))
		if got := w.figure(x); err != nil || math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%s: got %v, %v, want %v", test.work, got, err, test.want)
		}
		if _, err := p.parse(w, []byte("nothing\n")); err == nil {
			t.Errorf("%s: no table is no error", test.work)
		}
	}
	for _, w := range works() {
		_, _, ok := p.command(w, 4711, "")
		if want := slices.Contains(libraryWorks(), w); ok != want {
			t.Errorf("perftest has %s: %v", w.key, ok)
		}
	}
}

// TestBesides compares with iwarp perf, within rounds.
func TestBesides(t *testing.T) {
	p := perftest("iwarp", time.Second)
	all := newTurns()
	all.figures[[2]string{"latency-64", ownPerf}] = byRound{0: 5, 1: 10, 2: 20}
	all.figures[[2]string{"latency-64", onLibrary}] = byRound{0: 6, 1: 9, 2: 40}
	got := all.besides([]tool{ownTool{label: ownPerf}, p})
	if len(got) != 2 || got[1].Tool != onLibrary || got[1].Ratio != 1.2 || got[1].More != 1 || got[1].MoreLower != 0 ||
		got[1].MoreUpper != 10.5 {
		t.Errorf("got %+v", got)
	}
}

// TestTimeLimit has a program that does not end.
func TestTimeLimit(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip(err)
	}
	p := &program{file: "sleep", limit: 100 * time.Millisecond,
		command: func(work, int, string) (server, client []string, ok bool) {
			return []string{"60"}, []string{"60"}, true
		}}
	_, err := p.measure(t.Context(), works()[0], "")
	if err == nil || err.Error() != "no end within 100ms" {
		t.Errorf("got %v", err)
	}
}

// TestNothingToMeasure: what would replace the figures by nothing, or has nowhere to put them, is refused before
// anything is measured.
func TestNothingToMeasure(t *testing.T) {
	for _, c := range []cli{{Docs: "../../docs", Rounds: 0}, {Docs: "../../docs", Rounds: -1},
		{Docs: "nowhere", Rounds: 1}} {
		if c.check() == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
	if err := (&cli{Docs: "../../docs", Rounds: 1}).check(); err != nil {
		t.Error(err)
	}
}

// TestMissingProgram is not installed unless that is asked for.
func TestMissingProgram(t *testing.T) {
	c := &cli{Install: false}
	err := c.provide(t.Context(), &program{file: "no-such-program", pkg: "nothing"})
	if err == nil || !strings.Contains(err.Error(), "package nothing") {
		t.Errorf("got %v", err)
	}
}

// TestTurns has every tool be the first once, and compares within rounds.
func TestTurns(t *testing.T) {
	a, b := ownTool{label: plainTCP}, ownTool{label: "iwarp"}
	if got := turned([]tool{a, b}, 1); got[0].name() != "iwarp" || got[1].name() != plainTCP {
		t.Errorf("the second round begins with %s", got[0].name())
	}
	all := newTurns()
	all.figures[[2]string{"latency-64", plainTCP}] = byRound{0: 10, 1: 20, 2: 40}
	all.figures[[2]string{"latency-64", "iwarp"}] = byRound{0: 20, 1: 30, 2: 40}
	got := all.values([]tool{a, b})
	if len(got) != 2 || got[1].Median != 30 || got[1].Ratio != 1.5 || got[1].RatioLower != 1.25 || got[1].Rounds != 3 {
		t.Errorf("got %+v", got)
	}
}

// TestBulkWrite: what 100 Gb/s would take is told of a row that another run would repeat.
func TestBulkWrite(t *testing.T) {
	measured := func(cc string, data float64, inconclusive ...string) perf.Report {
		costs := func(x float64) perf.Figures { return perf.Figures{Costs: perf.Costs{CPUByte: x}} }
		tcp := costs(data / 2)
		return perf.Report{Negotiated: perf.Negotiated{CC: cc}, Results: []perf.Result{{
			Op: perf.Write, Size: 1 << 20, Figures: costs(data), TCP: &tcp,
			Ratios: perf.Ratios{Inconclusive: inconclusive},
		}}}
	}
	for want, reports := range map[string][]perf.Report{
		"Under reno, Writes of 1 MiB take 0.30 ns of CPU for a byte at both ends together: 100 Gb/s would take 3.8 such CPUs, where plain TCP would take 1.9.": {
			measured("bbr", 0.4, "ratio_bw"), measured("reno", 0.3), measured("cubic", 0.5),
		},
		"Under bbr, ": {measured("reno", 0.3, "ratio_cpu"), measured("bbr", 0.4, "ratio_bw")},
	} {
		if got := buffersText(&record{Perf: reports}); !strings.Contains(got, want) {
			t.Errorf("there is no %q in %s", want, got)
		}
	}
	if got := buffersText(&record{Perf: []perf.Report{measured("bbr", 0.4, "ratio_cpu")}}); strings.Contains(got,
		"Writes of 1 MiB") {
		t.Errorf("of a busy machine: %s", got)
	}
}

// TestUnmeasured has no turn for a work that a tool does not have.
func TestUnmeasured(t *testing.T) {
	for _, p := range otherPrograms(time.Second) {
		for _, w := range works() {
			_, _, ok := p.command(w, 1, "reno")
			want := p.label == "UCX" || p.label == "iperf3" && w.quantity == perf.Bandwidth || p.label == "libfabric" &&
				w.quantity == perf.Latency
			if ok != want {
				t.Errorf("%s has %s: %v", p.label, w.key, ok)
			}
			if ok {
				continue
			}
			if _, err := p.measure(t.Context(), w, ""); !errors.Is(err, errNotMeasured) {
				t.Errorf("%s, %s: %v", p.label, w.key, err)
			}
		}
	}
}

// TestManyOver has some connections over each lower layer of our own.
func TestManyOver(t *testing.T) {
	for _, name := range lowerLayers {
		l, err := manyOver(t.Context(), name, 60, 0)
		testrig.Must(t, err)
		if l.PerEnd < 1000 || l.SetUps <= 0 || l.Lost > 0 || l.Closed <= 0 {
			t.Errorf("%+v", l)
		}
	}
}
