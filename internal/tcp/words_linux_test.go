package tcp

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestRouteMTU asks for the MTU of the loopback interface, and of the way to what is no address.
func TestRouteMTU(t *testing.T) {
	if mtu, headers := routeMTU(t.Context(), "127.0.0.1:9"); mtu < 576 || headers != headersIPv4 {
		t.Errorf("IPv4: an MTU of %d, %d bytes of headers", mtu, headers)
	}
	if mtu, headers := routeMTU(t.Context(), "nowhere"); mtu != 0 || headers != 0 {
		t.Errorf("nowhere: an MTU of %d, %d bytes of headers", mtu, headers)
	}
	mtu, headers := routeMTU(t.Context(), "[::1]:9")
	if mtu == 0 {
		t.Skip("there is no IPv6")
	}
	if mtu < 1280 || headers != headersIPv6 {
		t.Errorf("IPv6: an MTU of %d, %d bytes of headers", mtu, headers)
	}
}

func TestOnLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:9": true, "[::1]:9": true,
		"192.0.2.1:9": false, "nowhere": false} {
		if onLoopback(address) != want {
			t.Errorf("%s: %t", address, !want)
		}
	}
}

// TestMaxSegment limits the segments of a socket before it is connected.
func TestMaxSegment(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	d := net.Dialer{ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
		setMaxSegment(c, 1004)
		setMaxSegment(c, 0)
		return nil
	}}
	conn, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
	testrig.Must(t, err)
	defer conn.Close()
	if emss := emssOf(New(conn)); emss > 1004 || emss < 1004-40 { // less TCP's options
		t.Errorf("segments of %d bytes", emss)
	}
}
