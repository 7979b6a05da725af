package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/perf"
)

// together reports whether both ends are in this process, for latency too.
func (c *perfCmd) together() bool {
	return c.Processes == 1 || c.Processes == 0 && (c.Pcap != "" || c.over().Inside)
}

// processesText says in how many processes the ends are.
func (c *perfCmd) processesText() string {
	switch {
	case c.Connect != "":
		return "2"
	case c.together():
		return "1"
	}
	return "bandwidth 1, latency 2"
}

// measureHere measures with both ends on this host.
func (c *perfCmd) measureHere(ctx context.Context, std streams, opts perf.Options,
	watch perf.Observer) (*perf.Report, error) {
	if c.together() {
		return perf.Run(ctx, opts, watch)
	}
	responder, err := subprocess.Start(ctx, std.err, "perf", "--listen", "127.0.0.1:0",
		"--until-eof", "--network", c.name())
	if err != nil {
		return nil, fmt.Errorf("perf: cannot start the second process (--processes 1 needs none): %w", err)
	}
	report, err := perf.RunTwo(ctx, responder.Addr, opts, watch)
	died := responder.Stop()
	switch {
	case errors.As(err, new(*perf.InterruptedError)): // ^C goes to both processes, and this one may be the second to hear of it
		err = &interrupt{err}
	case died != nil && err != nil && ctx.Err() == nil: // the end of ctx kills it
		err = fmt.Errorf("perf: the server's process ended: %w: %w", died, err)
	}
	return report, err
}
