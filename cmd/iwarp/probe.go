package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goiwarp/iwarp/internal/probe"
)

// probeCmd asks a responder what it speaks.
type probeCmd struct {
	Addr        string        `arg:"" name:"host:port" help:"The responder."`
	Slow        bool          `help:"Also find out how long it waits for a Request: up to 90 s."`
	Timeout     time.Duration `default:"${probe_timeout}" help:"How long to wait for each answer."`
	PrivateData privateData   `placeholder:"TEXT" help:"Private data of the Requests, for applications that want some: text, or octets in hex behind 0x."`
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
	if r == nil {
		return err
	}
	return errors.Join(err, c.print(r, std))
}

func (c *probeCmd) print(r *probe.Report, std streams) error {
	if !c.JSON {
		return r.Print(std.out)
	}
	enc := json.NewEncoder(std.out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
