package main

import (
	"context"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/mpa"
)

// userTCP has the peer be one over a TCP in user space. It returns what ends that.
func (c *conformCmd) userTCP(ctx context.Context, std streams, opts *conform.Options, r *recording) (func(), error) {
	name := string(c.network())
	if c.TUN != "" {
		name = network.OnTUN(c.TUN)
	}
	over, err := network.Open(name)
	if err != nil {
		return nil, usage("conform: --tun: %w", err)
	}
	over.Tap(r.tap())
	stop := func() {}
	switch {
	case c.TUN == "":
		stop, err = c.inside(ctx, opts, over)
	case opts.Role == mpa.RoleResponder:
		opts.Peer = &conform.DialPeer{Addr: c.Peer, Timeout: c.Timeout, Dial: over.DialStream}
	default:
		stop, err = c.listenAtTUN(ctx, std, opts, over)
	}
	if err != nil {
		_ = over.Close()
		return nil, err
	}
	return func() {
		stop()
		_ = over.Close()
	}, nil
}

// inside has our own endpoint be the peer, with rping for its application, over a network that does not leave the
// process.
func (c *conformCmd) inside(ctx context.Context, opts *conform.Options,
	over *network.Network) (stop func(), err error) {
	ln, err := over.Listen(ctx, over.Here, &iwarp.ListenConfig{})
	if err != nil {
		return nil, err
	}
	end := rping.Start(ctx, ln, rping.ServerConfig{Persistent: true})
	opts.Peer = &conform.DialPeer{Addr: ln.Addr().String(), Timeout: c.Timeout, Dial: over.DialStream}
	return func() { _ = end() }, nil
}

// listenAtTUN has an Initiator come to a TCP in user space at a TUN device.
func (c *conformCmd) listenAtTUN(ctx context.Context, std streams, opts *conform.Options,
	over *network.Network) (stop func(), err error) {
	ln, err := over.ListenStream(ctx, c.Listen)
	if err != nil {
		return nil, err
	}
	warn(std, "conform", over)
	p := conform.NewListenPeer(ln, strings.Fields(c.Exec), c.Wait)
	opts.Peer = p
	return c.awaits(std, p, nil)
}
