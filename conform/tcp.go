package conform

import (
	"cmp"
	"context"
	"net"
	"time"
)

// A DialPeer is a Responder at a TCP address.
type DialPeer struct {
	Addr    string        // host:port
	Timeout time.Duration // to connect; if zero, DefaultTimeout
	// Dial, if it is set, connects to Addr in place of the operating system's TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Connect connects to the peer.
func (p *DialPeer) Connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Timeout, DefaultTimeout))
	defer cancel()
	if p.Dial != nil {
		return p.Dial(ctx, p.Addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", p.Addr)
}

// Again fails: a Responder does not connect.
func (p *DialPeer) Again(context.Context) (net.Conn, error) { return nil, errNoInitiator }

// Release does nothing.
func (p *DialPeer) Release() {}
