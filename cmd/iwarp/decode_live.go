package main

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/live"
)

// capturing captures on the interface, until an interrupt or until the time is over: either is a good end.
func (c *decodeCmd) capturing(ctx context.Context, std streams) feed {
	return func(flush func() error, cfg decode.Config, to decode.Consumer) (decode.Totals, error) {
		source, err := live.Open(c.Interface, live.Config{Idle: flush})
		if err != nil {
			return decode.Totals{}, err
		}
		defer source.Close() //nolint:errcheck // it was read only
		if c.Duration > 0 {
			var done context.CancelFunc
			ctx, done = context.WithTimeout(ctx, c.Duration)
			defer done()
		}
		context.AfterFunc(ctx, source.Interrupt)
		fmt.Fprintf(std.err, "capturing on %s; Ctrl-C ends it\n", c.Interface)
		return decode.RunPackets(source, cfg, to)
	}
}
