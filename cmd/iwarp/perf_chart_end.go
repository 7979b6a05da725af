package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/perf"
)

// asideWidth is how wide the words in front of the last lines are.
const asideWidth = 10

// explain prints how to read the figures, what they come to, what is wrong with them, and what to try next.
func (p *perfChart) explain(report *perf.Report) {
	p.lines(quiet, 0, strings.Join(p.legend(report), " "))
	fmt.Fprintln(p)
	p.entry(heading, "In short", strings.Join(p.short(report), " "))
	for _, note := range p.notes(report) {
		p.entry(bad, "Note", note)
	}
	p.hint("Next", p.next())
}

// hint prints commands and what they do, behind a word.
func (p *perfChart) hint(word string, all []hint) {
	width := 0
	for _, h := range all {
		width = max(width, len(h.command)+2)
	}
	for _, h := range all {
		fmt.Fprint(p, p.paint(heading, pad(word, asideWidth)), p.paint(ours, pad(h.command, width)))
		p.lines(usual, asideWidth+width, h.does)
		word = " "
	}
}

// entry prints a text behind a word.
func (p *perfChart) entry(as style, word, text string) {
	fmt.Fprint(p, p.paint(as, pad(word, asideWidth)))
	p.lines(usual, asideWidth, text)
}

// legend says how to read the chart.
func (p *perfChart) legend(report *perf.Report) (all []string) {
	if p.tcp {
		all = append(all, "A ratio is iWARP / TCP, the median of many short turns: more throughput is better, less latency and "+
			"less CPU time.")
	}
	all = append(all, "Latency is half a round trip of a Send or a Write, and the whole of a Read.")
	for _, s := range perf.Meanings(report.Options.Ops) {
		all = append(all, strings.ToUpper(s[:1])+s[1:]+".")
	}
	if slices.ContainsFunc(report.Results, lacksLate) {
		all = append(all, "There is no p99 of fewer than 300 round trips.")
	}
	if p.over.Unordered {
		all = append(all, `"ahead" is the part of the data that was placed before earlier data had come.`)
	}
	return all
}

// short is the best of each quantity, and how all are beside plain TCP.
func (p *perfChart) short(report *perf.Report) []string {
	best := func(of func(perf.Result) float64) perf.Result {
		return slices.MaxFunc(report.Results, func(a, b perf.Result) int { return cmp.Compare(of(a), of(b)) })
	}
	fast := best(func(r perf.Result) float64 { return r.MsgRate })
	wide := best(func(r perf.Result) float64 { return r.BWAverage })
	soon := best(func(r perf.Result) float64 { return -r.Typical })
	all := []string{fmt.Sprintf("%s %vs of %s a second, %s with %vs of %s, %s for a %v of %s.",
		countText(messages(&fast.Figures)), fast.Op, sizeText(fast.Size),
		bitsText(bits(&wide.Figures)), wide.Op, sizeText(wide.Size),
		latencyText(soon.Typical), soon.Op, sizeText(soon.Size))}
	if p.tcp {
		all = append(all, besideTCP(report))
	}
	return append(all, "All data was verified.")
}

// shownRatios are those of the chart, with what they are of.
var shownRatios = []struct{ key, of string }{
	{"ratio_bw", "throughput"}, {"ratio_lat", "latency"}, {"ratio_cpu", "CPU time"},
}

// besideTCP has the least and the greatest of each ratio.
func besideTCP(report *perf.Report) string {
	var parts []string
	for _, shown := range shownRatios {
		if text := ratioRange(report, shown.key); text != "" {
			parts = append(parts, text+" its "+shown.of)
		}
	}
	return "Beside TCP: " + strings.Join(parts, ", ") + "."
}

// ratioRange is the least and the greatest of a ratio. It is empty without one.
func ratioRange(report *perf.Report, key string) string {
	some := slices.DeleteFunc(slices.Clone(report.Results), func(r perf.Result) bool { return r.Ratio(key) == 0 })
	if len(some) == 0 {
		return ""
	}
	slices.SortFunc(some, func(a, b perf.Result) int { return cmp.Compare(a.Ratio(key), b.Ratio(key)) })
	text := func(r perf.Result) string { return ratioText(r.Ratio(key), firm(r, key)) }
	if least, greatest := text(some[0]), text(some[len(some)-1]); least != greatest {
		return least + " to " + greatest
	}
	return text(some[0])
}

// notes say what takes away from the figures.
func (p *perfChart) notes(report *perf.Report) (all []string) {
	switch doubtful, ratios := p.doubtful(report); {
	case p.tcp && !report.Options.Judged():
		all = append(all, "A run this short does not find out which ratios another run would repeat: "+
			"--duration 200ms or more does.")
	case doubtful > 0:
		all = append(all, fmt.Sprintf("%d of %d ratios (~) would differ in another run, because this machine was busy. %s",
			doubtful, ratios, disturbedText(report)))
	}
	if n := scarce(report); n > 0 {
		all = append(all, fmt.Sprintf("%s only 5 slices of time, those that other programs disturbed least.",
			wording.If(n == 1, "1 figure comes from", fmt.Sprintf("%d figures come from", n))))
	}
	if r, ok := shortest(report); ok {
		all = append(all, fmt.Sprintf("Some throughput%s is mostly waiting: slices were %.1f round trips (%v) long. %s",
			wording.If(p.tcp, " (~)", ""), r.SliceTrips, tripTime(r), tripsAdvice(report.Options, tripTime(r))))
	}
	if p.tcp && !p.over.Sockets {
		all = append(all, fmt.Sprintf("Plain TCP is the kernel's, beside %s.", p.over.Text))
	}
	if why := report.Negotiated.FellBack; why != "" {
		all = append(all, "The startup fell back to another dialect: "+why)
	}
	if report.Interrupted {
		all = append(all, "The run was interrupted: the other rows are missing.")
	}
	return all
}

// doubtful counts the ratios of the chart that another run would not repeat, among all.
func (p *perfChart) doubtful(report *perf.Report) (n, all int) {
	for _, r := range report.Results {
		for _, shown := range shownRatios {
			if r.Ratio(shown.key) != 0 {
				all++
			}
			if !r.Repeats(shown.key) {
				n++
			}
		}
	}
	return n, all
}

// disturbedText says how busy the machine was, and what helps.
func disturbedText(report *perf.Report) string {
	all, dropped := 0, 0
	for _, r := range report.Results {
		all += r.BWPairs + r.LatPairs
		dropped += r.BWDropped + r.LatDropped
	}
	text := fmt.Sprintf("Other programs disturbed %d of %d slices of time.", dropped, all)
	if d := report.Options.Duration; d > 0 && d < time.Second {
		text += " A longer run repeats more: -D 1s."
	}
	return text
}

// scarce counts the figures of too few undisturbed slices.
func scarce(report *perf.Report) (n int) {
	for _, r := range report.Results {
		n += wording.Bit(r.Scarce(perf.Bandwidth)) + wording.Bit(r.Scarce(perf.Latency))
	}
	return n
}

// A hint is a command to try.
type hint struct{ command, does string }

func (p *perfChart) next() []hint {
	if p.peer != "" {
		return []hint{{"iwarp perf " + p.peer + " -v", "all columns; with --json for programs"}}
	}
	all := []hint{
		{"iwarp serve", "here, then on another machine: iwarp perf HOST"},
		{"iwarp perf -v", "all columns; with --json for programs"},
	}
	if runtime.GOOS == "linux" {
		all = append(all, hint{"iwarp run ib_write_bw", "an unmodified RDMA program, without RDMA hardware"})
	}
	return all
}
