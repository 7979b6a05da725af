package main

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/perf"
)

// A perfChart prints a measurement so that it is read at a glance: a bar for each row, units that people know, and at
// the end what it means.
type perfChart struct {
	screen
	over    *network.Network
	peer    string // where the server is; empty: here
	secure  bool   // through TLS
	tcp     bool   // plain TCP is measured, too
	columns []chartColumn
	live    bool // what is known of a row is shown elsewhere while its latency is measured
	begun   bool // a row lacks its latency
}

// chart prints to s, while a line that changes is live.
func (c *perfCmd) chart(s screen, live bool) *perfChart {
	o, _ := c.options() // which the command has checked
	p := &perfChart{screen: s, over: c.over(), peer: string(c.Connect), secure: c.given() != "",
		tcp: c.TCP == "on", live: live}
	p.columns = fitting(chartColumns(c.Op, o.Sizes, p.tcp, p.over.Unordered), s.width)
	return p
}

// connected prints what is measured, and the heading.
func (p *perfChart) connected(n perf.Negotiated) {
	where := "on this machine"
	if p.peer != "" {
		where = "between this host and " + p.peer
	}
	title := "iwarp perf   "
	fmt.Fprint(p, p.paint(heading, title))
	p.lines(usual, len(title), fmt.Sprintf("RDMA in software%s, %s", wording.If(p.tcp, " beside plain TCP", ""), where))
	fmt.Fprint(p, pad(" ", len(title)))
	p.lines(quiet, len(title), p.startup(n))
	fmt.Fprintln(p)
	fmt.Fprintln(p, p.paint(heading, p.names(func(c chartColumn) string { return c.group })))
	if p.tcp {
		fmt.Fprintln(p, p.paint(quiet, p.names(func(c chartColumn) string { return c.of })))
	}
	fmt.Fprintln(p, p.paint(quiet, p.heads()))
}

// startup says what the connections are like.
func (p *perfChart) startup(n perf.Negotiated) string {
	parts := []string{"over " + p.over.Text}
	if p.over.Streams && n.Dialect != mpa.DialectRFC6581 {
		parts = append(parts, fmt.Sprint("startup by ", n.Dialect))
	}
	if p.over.Streams {
		parts = append(parts, "CRC "+wording.OnOff(n.CRC), "markers "+wording.OnOff(n.MarkersSent || n.MarkersReceived))
	}
	if cc := congestionText(n); cc != "" {
		parts = append(parts, "congestion control "+cc)
	}
	if p.secure {
		parts = append(parts, "TLS"+wording.If(p.tcp, " (but not for plain TCP)", ""))
	}
	return strings.Join(parts, ", ")
}

// leastText is how much room text has, also on a screen that is too narrow for it.
const leastText = 20

// lines prints a text within the screen, of which the first line stands behind something as wide as indent.
func (p *perfChart) lines(as style, indent int, text string) {
	first := true
	for line := range wording.Lines(text, max(p.width-indent, leastText)) {
		if !first {
			fmt.Fprint(p, strings.Repeat(" ", indent))
		}
		fmt.Fprintln(p, p.paint(as, line))
		first = false
	}
}

// names is a line of what several columns have in common, above the first of them.
func (p *perfChart) names(of func(chartColumn) string) string {
	line, last := "", ""
	for i, at := 0, 0; i < len(p.columns); i++ {
		c := p.columns[i]
		at += c.gap
		if name := of(c); name != last {
			line = pad(line, at+c.indent()) + name
			last = name
		}
		at += c.width
	}
	return strings.TrimRight(line, " ")
}

// heads is the line above the rows.
func (p *perfChart) heads() string {
	var line strings.Builder
	for _, c := range p.columns {
		line.WriteString(c.padded(c.head))
	}
	return strings.TrimRight(line.String(), " ")
}

// bandwidth returns what is known of a row, and prints it as the beginning of a line unless it is shown elsewhere.
func (p *perfChart) bandwidth(r perf.Result) string {
	if !p.live {
		fmt.Fprint(p, p.row(p.columns, r, false))
		p.begun = true
	}
	return screen{}.row(p.columns, r, false)
}

// result prints a row, or the rest of it.
func (p *perfChart) result(r perf.Result) {
	if !p.begun {
		fmt.Fprint(p, p.row(p.columns, r, false))
	}
	fmt.Fprintln(p, p.row(p.columns, r, true))
	p.begun = false
}

// abandon ends a row that remains without its latency.
func (p *perfChart) abandon() {
	if p.begun {
		fmt.Fprintln(p)
	}
	p.begun = false
}
