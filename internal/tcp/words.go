package tcp

import (
	"context"
	"net"
	"syscall"
)

// An FPDU is a multiple of four octets long. Where the EMSS is not, no segment is ever full
// of FPDUs: each has to be a packet of its own, which TCP sends at a small part of the rate of
// segments that are left to the network card to cut. TCP's options are multiples of four as
// well, and so the EMSS is if the maximum segment size is that either end tells the other.

// WholeWords returns a Dialer that has the maximum segment size be a multiple of four octets,
// for both directions, where the MTU of the route makes it none. A Control function of d
// comes after that.
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

// Octets of the headers that a maximum segment size leaves room for.
const (
	headersIPv4 = 20 + 20
	headersIPv6 = 40 + 20
)

// wholeWords returns the largest multiple of four octets that fits into a packet of an MTU
// after its headers, and 0 if the packet holds no more than that anyway.
func wholeWords(mtu, headers int) int {
	n := mtu - headers
	if n <= 0 || n%4 == 0 {
		return 0
	}
	return n &^ 3
}
