package conform

import (
	"context"
	"net"
	"time"
)

// A DialPeer is a Responder at a TCP address.
type DialPeer struct {
	Addr    string        // host:port
	Timeout time.Duration // to connect; if zero, DefaultTimeout
}

// Connect connects to the peer.
func (p *DialPeer) Connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: p.Timeout}
	if d.Timeout == 0 {
		d.Timeout = DefaultTimeout
	}
	return d.DialContext(ctx, "tcp", p.Addr)
}

// Again fails: a Responder does not connect.
func (p *DialPeer) Again(context.Context) (net.Conn, error) { return nil, errNoInitiator }

// Release does nothing.
func (p *DialPeer) Release() {}
