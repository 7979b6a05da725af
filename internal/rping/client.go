package rping

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// Client connects to the server at addr, host:port, and pings it. When the
// context ends, so do the pings: that is an error only if there was a number of
// them to make.
func Client(ctx context.Context, addr string, cfg ClientConfig) error {
	if cfg.Size == 0 {
		cfg.Size = DefaultSize
	}
	if err := CheckSize(cfg.Size); err != nil {
		return err
	}
	rnic := cfg.rnic()
	defer rnic.Close()
	e, err := newEndpoint(&cfg.Config, rnic, cfg.Size)
	if err != nil {
		return err
	}
	defer e.close()
	c := &client{endpoint: e, cfg: cfg}
	if c.source, err = e.register(cfg.Size, offered); err != nil {
		return err
	}
	if err := c.connect(ctx, addr); err != nil {
		return err
	}
	return c.outcome(c.run(ctx))
}

type client struct {
	*endpoint
	cfg    ClientConfig
	source *iwarp.MR
	pings  int // done
}

func (c *client) connect(ctx context.Context, addr string) error {
	d := iwarp.Dialer{
		PD: c.pd, QP: c.qpConfig(), Preset: c.Preset, MPA: c.offer(),
		NoFallback: c.cfg.NoFallback, Timeout: c.cfg.Timeout, Prepare: c.prepare, Wrap: c.cfg.Wrap,
		Net: net.Dialer{LocalAddr: c.cfg.Source},
	}
	qp, err := c.dial(ctx, &d, addr)
	var rejected *iwarp.RejectError
	if errors.As(err, &rejected) {
		c.privateData(rejected.PrivateData)
	}
	if err != nil {
		c.qp = nil // that prepare has seen
		return err
	}
	c.qp = qp
	c.report(Connected{qp.RemoteAddr(), qp.Negotiated()})
	c.privateData(qp.Negotiated().PrivateData)
	return nil
}

func (c *client) dial(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error) {
	if c.cfg.Dial == nil {
		return d.Dial(ctx, "tcp", addr)
	}
	return c.cfg.Dial(ctx, d, addr)
}

// run makes the pings. When ctx ends, the ping under way is still finished, if
// the server plays its part soon, so that the connection ends in order.
func (c *client) run(ctx context.Context) error {
	grace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(graceTime, cancel) })()
	for c.cfg.Count == 0 || c.pings < c.cfg.Count {
		if err := c.pause(ctx); err != nil {
			return err
		}
		if err := c.ping(grace); err != nil {
			return err
		}
		c.pings++
	}
	return nil
}

// pause waits before each ping but the first. It fails if ctx has ended.
func (c *client) pause(ctx context.Context) error {
	if c.pings == 0 || c.cfg.Interval <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(c.cfg.Interval):
		return nil
	}
}

// graceTime is how long a ping may still take when the context has ended.
const graceTime = time.Second

func (c *client) ping(ctx context.Context) error {
	fill(c.source.Bytes(), c.pings)
	begun := time.Now()
	if err := c.exchange(ctx, c.source); err != nil { // the server reads
		return err
	}
	if err := c.exchange(ctx, c.data); err != nil { // the server writes
		return err
	}
	took := time.Since(begun)
	if c.Validate {
		if err := compare(c.pings, c.data.Bytes(), c.source.Bytes()); err != nil {
			return err
		}
	}
	c.report(Pinged{Text: text(c.data.Bytes()), Size: c.data.Len(), Time: took})
	return nil
}

// exchange tells the server of a buffer and waits for its "go ahead".
func (c *client) exchange(ctx context.Context, mr *iwarp.MR) error {
	if err := c.advertise(advertOf(mr, mr.Len())); err != nil {
		return err
	}
	_, err := c.receive(ctx)
	return err
}

// outcome judges why the pings ended.
func (c *client) outcome(err error) error {
	endless := c.cfg.Count == 0 && c.pings > 0
	switch {
	case errors.Is(err, iwarp.ErrPeerClosed):
		c.report(Disconnected{})
		if endless && c.cfg.MayClose {
			return nil
		}
		err = c.left()
	case errors.Is(err, context.Canceled) && endless:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("rping: interrupted after %d of %d pings", c.pings, c.cfg.Count)
	}
	if err != nil {
		return fmt.Errorf("rping: ping %d: %w", c.pings, err)
	}
	return nil
}

// left says why a server may have closed the connection.
func (c *client) left() error {
	if c.pings == 0 && !c.qp.Negotiated().Enhanced {
		return fmt.Errorf("%w before it read anything: this startup tells it no IRD and ORD, and rdma-core's rping then has no ORD to Read with: use revision 2", iwarp.ErrPeerClosed)
	}
	return iwarp.ErrPeerClosed
}
