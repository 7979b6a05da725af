package main

import (
	"context"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/rping"
)

// both is the server and the client in one process, over a network that does not leave it. What is printed is the client's.
func (c *rpingCmd) both(ctx context.Context, over *network.Network, cfg rping.Config, client rping.ClientConfig) error {
	lc, err := c.listenConfig(cfg)
	if err != nil {
		return err
	}
	ln, err := over.Listen(ctx, over.Here, &lc)
	if err != nil {
		return err
	}
	defer ln.Close()
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an interrupt is the client's: it closes in order
	defer cancel()
	server := cfg
	server.Watch = nil
	served := make(chan error, 1)
	go func() { served <- rping.Serve(serving, ln, rping.ServerConfig{Config: server, Reject: c.Reject}) }()
	if err := rping.Client(ctx, ln.Addr().String(), client); err != nil {
		return err
	}
	return <-served
}
