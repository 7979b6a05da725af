package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/hostinfo"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/terminal"
	"github.com/goiwarp/iwarp/perf"
)

// A perfPrinter prints a measurement while it runs, or as JSON when it is over. It is no report.Report: nothing is
// judged, and the text comes row by row.
type perfPrinter struct {
	out      io.Writer
	view     perfView // nil: JSON
	progress *progressLine
	began    time.Time
	peer     string // empty: both ends are here
	unread   func() // ends a measurement whose text is lost

	soFar perf.Report // what there is of it
	begun string      // what is known of a row whose latency is measured
}

// A perfView prints a measurement for people.
type perfView interface {
	connected(n perf.Negotiated)
	bandwidth(r perf.Result) string // its latency is not measured yet; what to show of it meanwhile
	result(r perf.Result)
	abandon()               // the rest of a row that was begun
	explain(r *perf.Report) // at the end
}

func (c *perfCmd) printer(std streams) *perfPrinter {
	p := &perfPrinter{out: std.out, progress: newProgressLine(std.err), began: time.Now()}
	if c.Connect != "" {
		p.peer = c.Connect.withPort()
	}
	switch {
	case c.JSON:
	case c.Table, c.AllColumns, c.ReportGbits:
		p.view = c.table(std.out)
	default:
		p.view = c.chart(newScreen(std.out), p.progress.there())
	}
	return p
}

func (p *perfPrinter) observer() perf.Observer {
	return perf.Observer{Progress: p.show, Connected: p.connected, Bandwidth: p.bandwidth, Result: p.result}
}

// show says on a terminal how far the measurement is.
func (p *perfPrinter) show(s perf.Progress) {
	row := p.begun
	if row == "" {
		row = fmt.Sprintf("%v of %s:%s", s.Op, sizeText(s.Size), rateSoFar(s))
	}
	p.progress.text(fmt.Sprintf("%s  %.0f%%%s", row, 100*s.Done, remaining(s)))
}

// rateSoFar is a throughput that is being measured.
func rateSoFar(s perf.Progress) string {
	if s.MsgRate == 0 {
		return ""
	}
	sent := perf.Figures{MsgRate: s.MsgRate, BWAverage: s.MsgRate * 1e6 * float64(s.Size) / (1 << 20)}
	x := throughputOf(perf.Result{Size: s.Size, Figures: sent})
	return fmt.Sprintf("  %s %s (%s)", figure(x.ours), x.unit, s.Transport)
}

// remaining estimates how long it still takes, once that can be told.
func remaining(s perf.Progress) string {
	if s.Done < 0.05 {
		return ""
	}
	left := time.Duration(float64(s.Elapsed) * (1 - s.Done) / s.Done)
	return fmt.Sprintf(", %.0f s left", left.Seconds())
}

func (p *perfPrinter) connected(n perf.Negotiated) {
	p.soFar.Negotiated = n
	if p.view != nil {
		p.progress.clear()
		p.view.connected(n)
		p.look()
	}
}

func (p *perfPrinter) bandwidth(r perf.Result) {
	if p.view != nil {
		p.begun = p.view.bandwidth(r)
		p.look()
	}
}

func (p *perfPrinter) result(r perf.Result) {
	p.soFar.Results = append(p.soFar.Results, r)
	p.begun = ""
	if p.view != nil {
		p.progress.clear()
		p.view.result(r)
		p.look()
	}
}

// lost is why what was printed cannot be read, if it cannot.
func (p *perfPrinter) lost() error {
	if guard, ok := p.out.(*terminal.Guard); ok {
		return guard.Err()
	}
	return nil
}

// look ends a measurement whose text is lost: it may take hours.
func (p *perfPrinter) look() {
	if p.unread != nil && p.lost() != nil {
		p.unread()
	}
}

// ended prints the outcome of a measurement. If either end leaves early, it prints what was measured by
// then: that may have taken hours.
func (p *perfPrinter) ended(ctx context.Context, opts perf.Options, r *perf.Report, err error) error {
	if p.view != nil {
		p.view.abandon()
	}
	switch {
	case err == nil:
		return p.finish(r)
	case ctx.Err() != nil, errors.As(err, new(*perf.InterruptedError)), errors.As(err, new(*perf.GoneError)):
		return join(err, p.interrupted(opts))
	}
	return err
}

func (p *perfPrinter) finish(r *perf.Report) error {
	if p.view == nil {
		return report.WriteJSON(p.out, p.document(r))
	}
	p.view.explain(r)
	return nil
}

// interrupted prints what there was when an end was interrupted, or the responder had gone. Of the table the rows are
// there, and lack what explains them.
func (p *perfPrinter) interrupted(opts perf.Options) error {
	p.soFar.Options, p.soFar.Interrupted = opts, true
	if all, err := opts.Resolved(); err == nil { // as a whole run has them
		p.soFar.Options = all
	}
	if p.soFar.Results == nil {
		p.soFar.Results = []perf.Result{}
	}
	if p.view != nil && len(p.soFar.Results) == 0 {
		return nil
	}
	return p.finish(&p.soFar)
}

// A perfDocument is a report with what measured it, where and when: see docs/perf-json.md.
type perfDocument struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Peer    string    `json:"peer,omitempty"`
	hostinfo.Machine
	*perf.Report
}

func (p *perfPrinter) document(r *perf.Report) perfDocument {
	host, _ := os.Hostname() // empty, if the system does not tell
	return perfDocument{versionName(built()), p.began.UTC().Truncate(time.Second), host, p.peer, hostinfo.This(), r}
}
