//go:build !linux

package tcp

import (
	"context"
	"net"
)

// Listen is lc.Listen.
func Listen(ctx context.Context, lc net.ListenConfig, network, addr string) (net.Listener, error) {
	return lc.Listen(ctx, network, addr)
}
