package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/goiwarp/iwarp/perf"
)

// A perfPrinter prints a measurement while it goes on, or as JSON when it is over.
type perfPrinter struct {
	out      io.Writer
	json     bool
	progress *progressLine
}

func newPerfPrinter(std streams, json bool) *perfPrinter {
	return &perfPrinter{out: std.out, json: json, progress: newProgressLine(std.err)}
}

func (p *perfPrinter) observer() perf.Observer {
	watch := perf.Observer{Progress: p.progress.show}
	if !p.json {
		watch.Connected, watch.Result = p.connected, p.result
	}
	return watch
}

// connected prints what was negotiated, in the manner of perftest, and the heading.
func (p *perfPrinter) connected(n perf.Negotiated) {
	p.progress.clear()
	for _, line := range [][2]string{
		{"Dialect", n.Dialect + ", MPA revision " + strconv.Itoa(n.Revision)},
		{"Markers", fmt.Sprintf("received %s, sent %s", onOff(n.MarkersReceived), onOff(n.MarkersSent))},
		{"CRC", fmt.Sprintf("received %s, sent %s", onOff(n.CRC), onOff(n.CRC))},
		{"IRD, ORD", fmt.Sprintf("%d, %d", n.IRD, n.ORD)},
		{"Peer to peer", onOff(n.PeerToPeer) + ", RTR " + n.RTR},
		{"EMSS, MULPDU", fmt.Sprintf("%d, %d octets", n.EMSS, n.MULPDU)},
		{"Fallback", n.FellBack},
	} {
		if line[1] != "" {
			fmt.Fprintf(p.out, " %-14s: %s\n", line[0], line[1])
		}
	}
	fmt.Fprint(p.out, perfHeading)
}

const perfHeading = `
              ------------- bandwidth -------------   ---- latency [usec] ----   ------ plain TCP ------   --- ratio ---
 op    #bytes BW average[MiB/sec]    MsgRate[Mpps]    t_typical            99%   MiB/sec       typ       99%      bw     lat
`

// result prints one row.
func (p *perfPrinter) result(r perf.Result) {
	p.progress.clear()
	fmt.Fprintf(p.out, " %-5v %7d %15.2f %16.6f %12.2f %14.2f", r.Op, r.Size, r.BWAverage, r.MsgRate, r.Typical, r.P99)
	if t := r.TCP; t != nil {
		fmt.Fprintf(p.out, " %9.2f %9.2f %9.2f %7.2f %7.2f", t.BWAverage, t.Typical, t.P99, r.RatioBW, r.RatioLat)
	}
	fmt.Fprintln(p.out)
}

const perfFooting = `
 Latency is half a round trip for Send and Write (a Write with a zero-length Send behind it), a whole one for Read.
 For Sends and Writes of up to 16 KiB consumers poll before they sleep, unless --events is given; plain TCP sleeps.
 Ratios are iWARP / plain TCP in the same run, the median of %d rounds. All data was verified.
`

func (p *perfPrinter) finish(report *perf.Report) error {
	if !p.json {
		_, err := fmt.Fprintf(p.out, perfFooting, perf.Rounds)
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s\n", text)
	return err
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
