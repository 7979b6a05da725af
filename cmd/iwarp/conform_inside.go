package main

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/rping"
)

// inside has our own endpoint be the peer, with rping for its application, over a network that does not leave the process. It
// returns what ends it.
func (c *conformCmd) inside(ctx context.Context, opts *conform.Options) (stop func(), err error) {
	over, err := network.Open(string(c.Network))
	if err != nil {
		return nil, err
	}
	ln, err := over.Listen(ctx, over.Here, &iwarp.ListenConfig{})
	if err != nil {
		_ = over.Close()
		return nil, err
	}
	end := rping.Start(ctx, ln, rping.ServerConfig{Persistent: true})
	opts.Peer = &conform.DialPeer{Addr: ln.Addr().String(), Timeout: c.Timeout, Dial: over.DialStream}
	return func() {
		_ = end()
		_ = over.Close()
	}, nil
}

// atTUN has the peer be one that a TCP in user space reaches by a TUN device. It returns what ends that.
func (c *conformCmd) atTUN(opts *conform.Options) (stop func(), err error) {
	over, err := network.Open(network.OnTUN(c.TUN))
	if err != nil {
		return nil, usage("conform: --tun: %w", err)
	}
	opts.Peer = &conform.DialPeer{Addr: c.Peer, Timeout: c.Timeout, Dial: over.DialStream}
	return func() { _ = over.Close() }, nil
}
