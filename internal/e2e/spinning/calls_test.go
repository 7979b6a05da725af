package spinning_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// answerStream sends back what comes on each stream, until standard input ends.
func answerStream(ctx context.Context) error {
	ln, err := stream.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := subprocess.UntilEOF(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	subprocess.Announce(os.Stdout, ln.Addr())
	for {
		c, err := ln.Accept()
		if err != nil {
			return nil //nolint:nilerr // standard input has ended
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

// TestCallsSpin: each call that waits for the peer looks.
func TestCallsSpin(t *testing.T) {
	lacksLooks(t)
	p, err := subprocess.Start(t.Context(), os.Stderr, answers)
	testrig.Must(t, err)
	defer func() { _ = p.Stop() }()
	fetch := func(c *iwarp.QP, s iwarp.SGE, from iwarp.Remote) error {
		return c.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{s}, Remote: from})
	}
	for name, call := range map[string]func(context.Context, *iwarp.QP, iwarp.SGE, iwarp.Remote) error{
		"Write": func(ctx context.Context, c *iwarp.QP, s iwarp.SGE, to iwarp.Remote) error {
			_, err := c.Write(ctx, s, to)
			return err
		},
		"Read": func(ctx context.Context, c *iwarp.QP, s iwarp.SGE, from iwarp.Remote) error {
			_, err := c.Read(ctx, s, from)
			return err
		},
		"Next": func(ctx context.Context, c *iwarp.QP, s iwarp.SGE, from iwarp.Remote) error {
			testrig.Must(t, fetch(c, s, from))
			wc, err := c.SendCQ().Next(ctx)
			testrig.Must(t, err)
			return wc.Err()
		},
		"All": func(ctx context.Context, c *iwarp.QP, s iwarp.SGE, from iwarp.Remote) error {
			testrig.Must(t, fetch(c, s, from))
			for wc, err := range c.SendCQ().All(ctx) {
				testrig.Must(t, err)
				return wc.Err()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := iwarp.Dialer{QP: iwarp.QPConfig{Confirm: true}}
			c, err := d.Dial(t.Context(), "tcp", p.Addr)
			testrig.Must(t, err)
			defer func() { testrig.Must(t, c.Close()) }()
			mr, err := c.PD().Register(make([]byte, 8), iwarp.LocalWrite)
			testrig.Must(t, err)
			var there iwarp.Region
			testrig.Must(t, there.UnmarshalBinary(c.Negotiated().PrivateData))
			rig.Until(t, func() bool {
				testrig.Must(t, call(t.Context(), c, mr.Slice(0, 8), there.Remote))
				return c.Stats().SpinTime > 0
			}, "looks")
		})
	}
}

// TestStreamSpins: Read of a stream looks.
func TestStreamSpins(t *testing.T) {
	lacksLooks(t)
	p, err := subprocess.Start(t.Context(), os.Stderr, streams)
	testrig.Must(t, err)
	defer func() { _ = p.Stop() }()
	c, err := stream.Dial(t.Context(), "tcp", p.Addr)
	testrig.Must(t, err)
	defer func() { testrig.Must(t, c.Close()) }()
	rig.Until(t, func() bool {
		_, err := c.Write([]byte("x"))
		testrig.Must(t, err)
		_, err = io.ReadFull(c, make([]byte, 1))
		testrig.Must(t, err)
		return c.QP().Stats().SpinTime > 0
	}, "looks")
}
