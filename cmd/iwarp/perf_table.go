package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/perf"
)

// A perfTable prints the columns of perftest's programs and more, row by row.
type perfTable struct {
	out       io.Writer
	over      *network.Network
	columns   []perfColumn
	processes string
	secure    bool // through TLS
	doubtful  bool // a ratio is inconclusive
}

func (c *perfCmd) table(out io.Writer) *perfTable {
	return &perfTable{
		out: out, over: c.over(), processes: c.processesText(), secure: c.given() != "",
		columns: perfColumns(c.Op, c.TCP == "on", c.AllColumns, c.ReportGbits, c.over().Unordered),
	}
}

// connected prints what was negotiated, in the manner of perftest, and the heading.
func (p *perfTable) connected(n perf.Negotiated) {
	lines := messageLines(n)
	if p.over.Streams {
		lines = streamLines(n)
	}
	if !p.over.Sockets {
		lines = append([][2]string{{"Network", p.over.Text}}, lines...)
	}
	if p.secure {
		lines = append(lines, [2]string{"TLS", "on; plain TCP goes without"})
	}
	for _, line := range append(lines, [2]string{"Processes", p.processes}, [2]string{"Fallback", n.FellBack}) {
		if line[1] != "" {
			fmt.Fprintf(p.out, " %-14s: %s\n", line[0], line[1])
		}
	}
	fmt.Fprint(p.out, "\n", perfGrid(p.columns).Heading())
}

// streamLines describe MPA over TCP.
func streamLines(n perf.Negotiated) [][2]string {
	return [][2]string{
		{"Dialect", fmt.Sprintf("%v, MPA revision %d", n.Dialect, n.Revision)},
		{"Markers", fmt.Sprintf("received %s, sent %s",
			wording.OnOff(n.MarkersReceived), wording.OnOff(n.MarkersSent))},
		{"CRC", fmt.Sprintf("received %s, sent %s", wording.OnOff(n.CRC), wording.OnOff(n.CRC))},
		depthLine(n), rtrLine(n),
		{"EMSS, MULPDU", fmt.Sprintf("%d, %d bytes at startup", n.EMSS, n.MULPDU)},
		{"Congestion", congestionText(n)},
	}
}

// messageLines describe a network without MPA.
func messageLines(n perf.Negotiated) [][2]string {
	return [][2]string{
		{"Dialect", n.Dialect.String()},
		depthLine(n), rtrLine(n),
		{"MULPDU", fmt.Sprintf("%d bytes at startup", n.MULPDU)},
	}
}

func depthLine(n perf.Negotiated) [2]string {
	return [2]string{"IRD, ORD", fmt.Sprintf("%d, %d", n.IRD, n.ORD)}
}

func rtrLine(n perf.Negotiated) [2]string {
	return [2]string{"Peer to peer", wording.OnOff(n.PeerToPeer) + ", RTR " + n.RTR}
}

// congestionText says which congestion control there is.
func congestionText(n perf.Negotiated) string {
	if n.CCPeer == "" || n.CC == n.CCPeer {
		return n.CC
	}
	return fmt.Sprintf("%s here, %s at the server", n.CC, n.CCPeer)
}

// bandwidth waits for the whole row, of which nothing is begun before.
func (p *perfTable) bandwidth(perf.Result) string { return "" }
func (p *perfTable) abandon()                     {}

// result prints one row.
func (p *perfTable) result(r perf.Result) {
	p.doubtful = p.doubtful || len(r.Inconclusive) > 0
	cells := make([]string, len(p.columns))
	for i, c := range p.columns {
		cells[i] = c.text(r)
	}
	fmt.Fprint(p.out, perfGrid(p.columns).Row(cells))
}

const perfFooting = `
 Latency is half a round trip for Send and Write (a Write with a zero-length Send after it), a whole one for Read.
 Both sides %s%s. All data was verified.
`

const perfTCPFooting = ` Ratios are iWARP / plain TCP, the median over pairs of slices (%s), with the quartiles.
`

const perfBesideFooting = ` Plain TCP has sockets of its own, another port, and the kernel: the ratios compare it with %s.
`

const perfDoubtfulFooting = ` ~: this ratio would differ in another run, because the machine was busy with other things.
`

const perfScarceFooting = ` *: fewer than 5 slices were undisturbed: the figure is of the 5 that waited least for a CPU.
`

const perfTripsFooting = ` +: slices of %.1f round trips of %v are too short for a bandwidth: each ends with one in which nothing more is sent, which lowers the figure%s. %s
`

const perfLateFooting = ` 99%: of fewer than 300 round trips there is none.
`

const perfCallsFooting = ` calls: not counted, as that takes Linux, root and a mounted tracefs at both ends.
`

const perfFewFooting = ` calls: not counted where there are fewer than 20 pairs of slices.
`

const perfShortFooting = ` calls: not counted, as the run is short.
`

const perfAheadFooting = ` "ahead" is the part of the bytes that both ends placed before earlier ones had come. All completed in order.
`

const perfPathFooting = ` EMSS and MULPDU of the connections have become %d and %d bytes, as TCP came to know the path.
`

const perfMessagePathFooting = ` The MULPDU of the connections has become %d bytes.
`

// explain prints what the figures are.
func (p *perfTable) explain(report *perf.Report) {
	waiting := "wait as programs do: TCP sleeps, iWARP spins for up to 100 us first"
	if report.Options.Poll {
		waiting = "poll before they sleep"
	}
	fmt.Fprintf(p.out, perfFooting, waiting, wording.If(report.Options.NoBaseline, "", ", plain TCP too"))
	if s := strings.Join(perf.Meanings(report.Options.Ops), "; "); s != "" {
		fmt.Fprintf(p.out, " %s%s.\n", strings.ToUpper(s[:1]), s[1:])
	}
	p.explainPath(report)
	if p.over.Unordered {
		fmt.Fprint(p.out, perfAheadFooting)
	}
	if !report.Options.NoBaseline {
		fmt.Fprintf(p.out, perfTCPFooting, pairsText(report))
		if !p.over.Sockets {
			fmt.Fprintf(p.out, perfBesideFooting, p.over.Text)
		}
	}
	if p.doubtful {
		fmt.Fprint(p.out, perfDoubtfulFooting)
	}
	p.explainMarks(report)
	if slices.ContainsFunc(report.Results, lacksLate) {
		fmt.Fprint(p.out, perfLateFooting)
	}
	if slices.ContainsFunc(report.Results, func(r perf.Result) bool { return r.Calls == 0 }) {
		few := slices.ContainsFunc(report.Results, func(r perf.Result) bool { return !r.Judged() })
		fmt.Fprint(p.out, wording.If(report.Options.Judged(),
			wording.If(few, perfFewFooting, perfCallsFooting), perfShortFooting))
	}
}

// explainMarks says what the marks mean that figures have.
func (p *perfTable) explainMarks(report *perf.Report) {
	if slices.ContainsFunc(report.Results, func(r perf.Result) bool {
		return r.Scarce(perf.Bandwidth) ||
			r.Scarce(perf.Latency)
	}) {
		fmt.Fprint(p.out, perfScarceFooting)
	}
	if worst, ok := shortest(report); ok {
		beside := wording.If(report.Options.NoBaseline, "", ", and leaves the ratio with little meaning")
		fmt.Fprintf(p.out, perfTripsFooting, worst.SliceTrips, tripTime(worst), beside,
			tripsAdvice(report.Options, tripTime(worst)))
	}
}

// shortest returns the result whose slices were the shortest beside the round trip, of those that are too short.
func shortest(report *perf.Report) (worst perf.Result, ok bool) {
	for _, r := range report.Results {
		if r.ShortSlices && (!ok || r.SliceTrips < worst.SliceTrips) {
			worst, ok = r, true
		}
	}
	return worst, ok
}

// tripTime is the round trip of the path.
func tripTime(r perf.Result) time.Duration {
	return time.Duration(r.RoundTrip * 1e3).Round(time.Microsecond)
}

// tripsAdvice says how slices become long enough beside such a round trip.
func tripsAdvice(o perf.Options, trip time.Duration) string {
	if o.Iters > 0 {
		return "More --iters, or a --duration in their place, make longer ones."
	}
	return fmt.Sprintf("With a --duration of %v they are long enough.", max(perf.LongEnough(trip), 2*o.Duration))
}

// lacksLate reports whether either transport has no 99th percentile.
func lacksLate(r perf.Result) bool {
	return r.Latencies.P99 == 0 || r.TCP != nil && r.TCP.Latencies.P99 == 0
}

// explainPath says what the EMSS and the MULPDU of the startup have become, if they did not stay.
func (p *perfTable) explainPath(report *perf.Report) {
	if len(report.Results) == 0 {
		return
	}
	n, last := report.Negotiated, report.Results[len(report.Results)-1]
	switch {
	case p.over.Streams && (last.EMSS != n.EMSS || last.MULPDU != n.MULPDU):
		fmt.Fprintf(p.out, perfPathFooting, last.EMSS, last.MULPDU)
	case last.MULPDU != n.MULPDU:
		fmt.Fprintf(p.out, perfMessagePathFooting, last.MULPDU)
	}
}

// pairsText says how many pairs of slices there were: of each quantity, that is, of a row's bandwidth or latency.
func pairsText(report *perf.Report) string {
	all, dropped, least := 0, 0, report.Options.Pairs()
	for _, r := range report.Results {
		all += r.BWPairs + r.LatPairs
		dropped += r.BWDropped + r.LatDropped
		least = min(least, r.BWPairs, r.LatPairs)
	}
	fewer := least < report.Options.Pairs()
	count := fmt.Sprintf("%d%s for each quantity%s",
		least, wording.If(fewer, " or more", ""), wording.If(fewer, ", as time ran out", ""))
	switch o := report.Options; {
	case !o.Judged():
		return count + ", too few to judge: none was dropped as disturbed, and no ratio marked ~"
	case o.KeepDisturbed:
		return count + ", disturbed ones too"
	case fewer:
		return fmt.Sprintf("%s: %d in all, of which %d were disturbed and dropped", count, all, dropped)
	default:
		return fmt.Sprintf("%d or more for each quantity, %d in all, of which %d were disturbed and dropped",
			least, all, dropped)
	}
}
