package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goiwarp/iwarp/internal/probe"
)

// probeCmd asks a responder what it speaks.
type probeCmd struct {
	Addr        string        `arg:"" name:"host:port" help:"The responder."`
	Slow        bool          `help:"Also find out how long it waits for a Request: up to 90 s."`
	Timeout     time.Duration `default:"${probe_timeout}" help:"How long to wait for each answer."`
	PrivateData string        `placeholder:"TEXT" help:"Private data of the Requests, for applications that want some."`
	JSON        bool          `name:"json" help:"Print the report as one JSON object."`
}

// Run asks, and prints the report.
func (c *probeCmd) Run(ctx context.Context, std streams) error {
	progress := newProgressLine(std.err)
	defer progress.clear()
	r, err := probe.Run(ctx, probe.Config{
		Addr: c.Addr, Slow: c.Slow, Timeout: c.Timeout, PrivateData: []byte(c.PrivateData), Progress: progress.text,
	})
	progress.clear()
	if err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.Print(std.out)
}
