package admission

import (
	"net"
	"net/netip"
	"testing"
)

// A text is an address of a network of somebody else's, as its text.
type text string

func (text) Network() string  { return "other" }
func (t text) String() string { return string(t) }

// TestSourceOf: hosts are told apart, and not their ports, nor what one host of IPv6 has for itself.
func TestSourceOf(t *testing.T) {
	for _, c := range []struct {
		addr net.Addr
		want string // empty: none
	}{
		{net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:7")), "192.0.2.1/32"},
		{net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::ffff:192.0.2.1]:8")), "192.0.2.1/32"},
		{text("192.0.2.1:9"), "192.0.2.1/32"},
		{text("[2001:db8:0:1:2:3:4:5]:9"), "2001:db8:0:1::/64"},
		{text("[fe80::1%eth0]:9"), "fe80::/64"},
		{text("a name"), ""},
		{nil, ""},
	} {
		if got := SourceOf(c.addr); got.IsValid() != (c.want != "") || got.IsValid() && got.String() != c.want {
			t.Errorf("%v: got %v, want %q", c.addr, got, c.want)
		}
	}
}
