package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/perf"
)

// colors are the sequences by which a terminal changes the style of text.
var colors = regexp.MustCompile("\x1b\\[[0-9]*m")

// chartOf is a measurement as it is printed on a screen.
func chartOf(c *perfCmd, s screen, report *perf.Report) string {
	var out strings.Builder
	s.Writer = &out
	p := c.chart(s, true)
	p.connected(report.Negotiated)
	for _, r := range report.Results {
		p.result(r)
	}
	p.explain(report)
	return out.String()
}

// measuredHere is a report of a row that is as good as can be, and of one on a busy machine.
func measuredHere() *perf.Report {
	judged := perf.Pairs{BWPairs: 20, LatPairs: 20}
	disturbed := perf.Pairs{BWPairs: 30, LatPairs: 22, BWDropped: 26, LatDropped: 4}
	return &perf.Report{
		Negotiated: perf.Negotiated{Dialect: mpa.DialectRFC6581, CRC: true, CC: "reno", CCPeer: "reno"},
		Options:    perf.Options{Duration: perf.DefaultDuration},
		Results: []perf.Result{
			{Op: perf.Send, Size: 64, Pairs: judged,
				Figures: perf.Figures{MsgRate: 2, BWAverage: 122, Latencies: perf.Latencies{Typical: 9.1, P99: 12.25}},
				TCP:     &perf.Figures{MsgRate: 1, BWAverage: 61, Latencies: perf.Latencies{Typical: 7.25, P99: 10}},
				Ratios:  perf.Ratios{RatioBW: 2.02, RatioLat: 1.26, RatioCPU: 0.98}},
			{Op: perf.Write, Size: 1 << 20, Pairs: disturbed,
				Figures: perf.Figures{MsgRate: 0.001, BWAverage: 1000, Latencies: perf.Latencies{Typical: 500}},
				TCP:     &perf.Figures{MsgRate: 0.002, BWAverage: 2000, Latencies: perf.Latencies{Typical: 400, P99: 1200}},
				Ratios: perf.Ratios{RatioBW: 0.51, RatioLat: 1.21, RatioCPU: 1.5,
					Inconclusive: []string{"ratio_bw"}}},
		},
	}
}

// TestPerfChart is all of it. Each ratio is a number, and it is said why one would not be repeated.
func TestPerfChart(t *testing.T) {
	c := &perfCmd{TCP: "on", Connect: "there:7174"}
	want := `iwarp perf   RDMA in software beside plain TCP, between this host and there:7174
             over TCP, CRC on, markers off, congestion control reno

             throughput                                latency in µs                   CPU
                                                       iwarp        TCP
        size █ iwarp │ TCP  iwarp   TCP       ratio    p50   p99    p50   p99  ratio   ratio
Send    64 B ██████│██████   2.00  1.00 M/s   2.02x   9.10  12.2   7.25  10.0  1.26x   0.98x
Write  1 MiB ██████▌     │   8.39  16.8 Gb/s ~0.51x    500     -    400  1200  1.21x   1.50x
A ratio is iWARP / TCP, the median of many short turns: more throughput is better, less latency
and less CPU time. Latency is half a round trip of a Send or a Write, and the whole of a Read.
There is no p99 of fewer than 300 round trips.

In short  2.00 million Sends of 64 B a second, 8.39 Gb/s with Writes of 1 MiB, 9.10 µs for a
          Send of 64 B. Beside TCP: ~0.51x to 2.02x its throughput, 1.21x to 1.26x its latency,
          0.98x to 1.50x its CPU time. All data was verified.
Note      1 of 6 ratios (~) would differ in another run, because this machine was busy. Other
          programs disturbed 30 of 92 slices of time. A longer run repeats more: -D 1s.
Note      1 figure comes from only 5 slices of time, those that other programs disturbed least.
Next      iwarp perf there:7174 -v  all columns; with --json for programs
`
	if diff := cmp.Diff(want, chartOf(c, screen{width: widestScreen}, measuredHere())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPerfChartColors: on a terminal that shows them, what is better than TCP is green, and what is worse yellow. What
// another run would not repeat, and what is about the same, is neither.
func TestPerfChartColors(t *testing.T) {
	got := chartOf(&perfCmd{TCP: "on"}, screen{width: widestScreen, color: true}, measuredHere())
	for _, want := range []string{
		"\x1b[1miwarp perf   \x1b[0m", "\x1b[36m██████\x1b[0m│\x1b[36m██████\x1b[0m   2.00",
		"M/s \x1b[32m  2.02x\x1b[0m   9.10", "10.0\x1b[33m  1.26x\x1b[0m   0.98x\n",
		"Gb/s\x1b[2m ~0.51x\x1b[0m    500", "\x1b[33m  1.21x\x1b[0m\x1b[33m   1.50x\x1b[0m\n",
		"\x1b[33mNote      \x1b[0m1 of 6 ratios", "\x1b[36miwarp serve",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	plain := chartOf(&perfCmd{TCP: "on"}, screen{width: widestScreen}, measuredHere())
	if colors.ReplaceAllString(got, "") != plain || strings.Contains(plain, "\x1b") {
		t.Errorf("without colors it is other text:\n%s", plain)
	}
}

// TestPerfChartFits: no line is wider than the screen, whatever is measured, and a screen of 80 columns has all but the
// bars of what is measured usually.
func TestPerfChartFits(t *testing.T) {
	report := measuredHere()
	large := perf.Figures{MsgRate: 1e3, BWAverage: 1e6, Latencies: perf.Latencies{Typical: 5e7, P99: 99_999}}
	report.Results = append(report.Results, perf.Result{Op: perf.Write, Size: 64 << 10, Figures: large, TCP: &large,
		Ahead: 1, Ratios: perf.Ratios{RatioBW: 9999, RatioLat: 999, RatioCPU: 999, Inconclusive: []string{"ratio_lat"}},
		Trips: perf.Trips{ShortSlices: true, SliceTrips: 3.5, RoundTrip: 12345}})
	report.Negotiated.FellBack, report.Interrupted = strings.Repeat("why ", 50), true
	for _, width := range []int{72, 79, 80, 96} {
		for _, network := range []networkName{"tcp", "sctp"} {
			for _, c := range []*perfCmd{
				{TCP: "on"}, {TCP: "off"}, {TCP: "on", Connect: "[2001:db8::1]:7174"},
				{TCP: "on", Op: []opName{"write-imm"}, Size: []string{"131071"}},
			} {
				c.Network = network
				if last := &report.Results[2]; c.Op != nil {
					last.Op, last.Size = perf.WriteImm, 131071
				} else {
					last.Op, last.Size = perf.Write, 64<<10
				}
				text := chartOf(c, screen{width: width}, report)
				for line := range strings.Lines(text) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("%d columns, want %d at most: %s", n, width, line)
					}
				}
			}
		}
	}
	narrow := chartOf(&perfCmd{TCP: "on"}, screen{width: 80}, measuredHere())
	if head := "size  iwarp   TCP       ratio    p50   p99    p50   p99  ratio   ratio\n"; !strings.Contains(narrow, head) {
		t.Errorf("80 columns lack some:\n%s", narrow)
	}
}

// TestPerfChartPart: a row begins when its throughput is known, unless a terminal's changing line shows that, and is
// ended whatever comes.
func TestPerfChartPart(t *testing.T) {
	r := measuredHere().Results[0]
	known := "Send    64 B ██████│██████   2.00  1.00 M/s   2.02x"
	for _, live := range []bool{false, true} {
		var out strings.Builder
		p := (&perfCmd{TCP: "on"}).chart(screen{&out, widestScreen, false}, live)
		if got := p.bandwidth(r); got != known {
			t.Errorf("known of a row: %q", got)
		}
		if begun := out.String(); live != (begun == "") || !live && begun != known {
			t.Errorf("live %v: printed %q", live, begun)
		}
		p.result(r)
		if got, whole := out.String(), known+"   9.10  12.2   7.25  10.0  1.26x   0.98x\n"; got != whole {
			t.Errorf("live %v: %q, want %q", live, got, whole)
		}
		out.Reset()
		p.bandwidth(r)
		p.abandon()
		if got := out.String(); live != (got == "") || !live && got != known+"\n" {
			t.Errorf("live %v: abandoned as %q", live, got)
		}
	}
}

// TestPerfBar: the greater throughput has all the room.
func TestPerfBar(t *testing.T) {
	for _, test := range []struct {
		ours, tcp float64
		want      string
	}{
		{1, 1, "████████████│"}, {2, 1, "██████│██████"}, {1, 2, "██████▌     │"}, {100, 1, "│████████████"},
		{1, 0, "│████████████"}, {0, 0, "             "}, {1, 100, "▏           │"}, {1, 4, "███▎        │"},
	} {
		r := perf.Result{Figures: perf.Figures{MsgRate: test.ours}, TCP: &perf.Figures{MsgRate: test.tcp}}
		if got := drawBar(screen{}, r); got != test.want {
			t.Errorf("%v beside %v: %q, want %q", test.ours, test.tcp, got, test.want)
		}
	}
}

// TestPerfChartNotes: what takes away from the figures is said, and what helps.
func TestPerfChartNotes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*perf.Report)
		want   string
	}{
		"short": {func(r *perf.Report) { r.Options.Duration = time.Millisecond },
			"Note      A run this short does not find out which ratios another run would repeat: --duration"},
		"interrupted": {func(r *perf.Report) { r.Interrupted = true }, "Note      The run was interrupted"},
		"fallback":    {func(r *perf.Report) { r.Negotiated.FellBack = "no answer" }, "fell back to another dialect: no answer"},
		"long path": {func(r *perf.Report) {
			r.Results[0].Trips = perf.Trips{ShortSlices: true, SliceTrips: 3.5, RoundTrip: 20_000}
		}, "slices were 3.5 round trips (20ms) long. With a\n          --duration of 400ms"},
	} {
		report := measuredHere()
		test.change(report)
		if got := chartOf(&perfCmd{TCP: "on"}, screen{width: widestScreen}, report); !strings.Contains(got, test.want) {
			t.Errorf("%s: no %q in\n%s", name, test.want, got)
		}
	}
	long := measuredHere()
	long.Results[0].ShortSlices = true
	if got := chartOf(&perfCmd{TCP: "on"}, screen{width: widestScreen}, long); !strings.Contains(got, "M/s   ~2.0x ") {
		t.Errorf("a ratio of round trips is not marked:\n%s", got)
	}
}
