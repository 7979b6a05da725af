package tcp

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

// An MTU that leaves a multiple of four bytes is left alone, and one that holds nothing.
func TestWholeWordsOfMTU(t *testing.T) {
	for _, c := range []struct{ mtu, headers, want int }{
		{1500, headersIPv4, 0}, {1500, headersIPv6, 0}, {9000, headersIPv4, 0}, {65536, headersIPv4, 0},
		{1450, headersIPv4, 1408}, {1450, headersIPv6, 1388}, {1498, headersIPv4, 1456}, {1499, headersIPv4, 1456},
		{1501, headersIPv4, 1460},
		{0, headersIPv4, 0}, {40, headersIPv4, 0}, {42, headersIPv4, 0}, {45, headersIPv4, 4},
	} {
		if got := wholeWords(c.mtu, c.headers); got != c.want {
			t.Errorf("an MTU of %d: %d, want %d", c.mtu, got, c.want)
		}
	}
}

// The consumer's own Control function, of either kind, is called as before, and what it
// refuses is refused.
func TestWholeWordsKeepsControl(t *testing.T) {
	refused := errors.New("refused")
	var dialed []string
	for _, d := range []net.Dialer{
		{Control: func(network, address string, _ syscall.RawConn) error {
			dialed = append(dialed, network+" "+address)
			return refused
		}},
		{ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			dialed = append(dialed, network+" "+address)
			return refused
		}},
	} {
		dialed = nil
		d = WholeWords(d)
		if _, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, refused) {
			t.Errorf("err = %v", err)
		}
		if len(dialed) != 1 || dialed[0] != "tcp4 127.0.0.1:1" {
			t.Errorf("called for %q", dialed)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d := WholeWords(net.Dialer{})
	c, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatalf("without Control: %v", err)
	}
	c.Close()
}
