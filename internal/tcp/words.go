package tcp

import (
	"context"
	"net"
	"syscall"
)

// An FPDU is a multiple of four bytes long. Where the EMSS is not, no segment is ever full of FPDUs. Each then has to
// be a packet of its own, which is far slower than to leave it to the network card to cut segments. TCP's options are
// multiples of four as well. So the EMSS is one, if the maximum segment size that either end announces is.

// WholeWords returns a Dialer that sets the maximum segment size to a multiple of four bytes, for both directions,
// where the MTU of the route leads to another. A Control function of d is called after that.
func WholeWords(d net.Dialer) net.Dialer {
	control := d.ControlContext
	if control == nil && d.Control != nil {
		given := d.Control
		control = func(_ context.Context, network, address string, c syscall.RawConn) error {
			return given(network, address, c)
		}
	}
	d.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		limitSegments(ctx, address, c)
		if control == nil {
			return nil
		}
		return control(ctx, network, address, c)
	}
	return d
}

// These are the bytes of the headers that a maximum segment size leaves room for.
const (
	headersIPv4 = 20 + 20
	headersIPv6 = 40 + 20
)

// wholeWords returns the largest multiple of four bytes that fits into a packet of an MTU
// after its headers, and 0 if they leave a multiple of four anyway.
func wholeWords(mtu, headers int) int {
	n := mtu - headers
	if n <= 0 || n%4 == 0 {
		return 0
	}
	return n &^ 3
}
