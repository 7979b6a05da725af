package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
)

// test runs the cases and reports on them while they are run. The error says that
// some failed.
func (c *conformCmd) test(ctx context.Context, std streams, opts conform.Options, files *reportFiles) error {
	report := conform.Report{Title: c.title(&opts)}
	out := folded(std.out)
	printer := conform.NewPrinter(out, c.Verbose)
	if c.JSON {
		printer = conform.NewJSONPrinter(std.out)
	}
	show, end := c.shower(std, &opts, printer)
	sum, err := conform.Run(ctx, opts, func(r *conform.Result) {
		report.Results = append(report.Results, *r)
		show(r)
	})
	end()
	if err != nil {
		return err
	}
	sum.Peer, sum.Version, sum.Time = cmp.Or(c.Peer, c.Listen), versionName(built()), files.began.UTC().Round(time.Second)
	report.Stopped, report.Interrupted, report.RoundTrip = sum.Stopped, sum.Interrupted, sum.RoundTrip
	report.PeerStopped, report.Away = sum.PeerStopped, sum.Away
	report.Peer, report.Version, report.Time = sum.Peer, sum.Version, sum.Time
	err = printer.Summary(&sum)
	if len(report.Results) > 0 {
		c.failures(out, &report)
	}
	return join(err, files.write(&report), c.verdict(&sum))
}

// shower returns what shows each result, and what is called after the last one.
func (c *conformCmd) shower(std streams, opts *conform.Options, printer *conform.Printer) (show func(*conform.Result),
	end func()) {
	cases, _ := opts.Selected() // Run returns the error
	line := &countLine{progressLine: newProgressLine(std.err), all: len(cases), began: time.Now()}
	if isTerminal(std.out) && !c.JSON && !c.Verbose {
		p := &groupPrinter{out: std.out, fail: printer.Result, line: line}
		return p.result, p.end
	}
	return func(r *conform.Result) {
		line.clear()
		printer.Result(r)
		line.one(r.Case.ID)
	}, line.clear
}

func (c *conformCmd) verdict(sum *conform.Summary) error {
	switch {
	case sum.NotMPA:
		return findings("conform: %s", sum.Stopped)
	case sum.Interrupted && sum.Failed > 0:
		return findings("conform: interrupted: %v", sum)
	case sum.PeerStopped && sum.Err != nil:
		return stopped("conform: %s: %v: %s", sum.Stopped, sum, c.again())
	case sum.PeerStopped:
		return stopped("conform: %s: %v: see its log, start it again, and run the cases from there on",
			sum.Stopped, sum)
	case sum.Err != nil:
		return fmt.Errorf("conform: %s%s", sum.Stopped, c.remedy(sum.Err))
	case sum.Stopped != "":
		return fmt.Errorf("conform: %s: %v", sum.Stopped, sum)
	case sum.Failed > 0 && c.Peer != "" && c.Say != "" && c.Answer == "":
		return findings("conform: %d failed; each connection began with --say, and no --answer was waited for: a peer that expects no such text fails everywhere", sum.Failed)
	case sum.Failed > 0:
		return findings("conform: %d failed", sum.Failed)
	}
	return nil
}

// again says what to do about a peer that cannot be connected any more.
func (c *conformCmd) again() string {
	if c.Listen != "" {
		return "have the client connect again and again, or name its command by --exec"
	}
	return "see its log, and start it again; a server that takes a single connection ends like this: have it take more (rping -s -P)"
}

// remedy says what to do about a peer that was never there.
func (c *conformCmd) remedy(err error) string {
	switch {
	case c.Exec != "":
		return "; see that the command of --exec connects to {host} and {port}"
	case c.Listen != "":
		return "; start the client, or name its command by --exec, and see --wait"
	}
	return remedy("conform", err)
}

// title is the one that is asked for, or says what is tested.
func (c *conformCmd) title(opts *conform.Options) string {
	if c.Title != "" {
		return c.Title
	}
	title := fmt.Sprintf("%v %s over %s", opts.Role, cmp.Or(c.Peer, c.Listen, "of our own"), c.network())
	if c.network() == network.SCTP { // which has no dialects
		return title
	}
	return fmt.Sprintf("%s, %v", title, cmp.Or(opts.Dialect, mpa.DialectRFC6581))
}
