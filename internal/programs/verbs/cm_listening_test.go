//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"syscall"
	"testing"
)

// TestBindWhereAnotherListens is EADDRINUSE at once, and not for rdma_listen to say: as long as that listens, and where
// both have an address in common.
func TestBindWhereAnotherListens(t *testing.T) {
	p := newProgram(t)
	listener, at := p.listen(1)
	bind := func(addr string, only6 bool) (Handle, syscall.Errno) {
		id := p.id(2)
		must(t, p.d.SetFamilyOnly(id, only6))
		return id, p.d.BindAddr(id, netip.AddrPortFrom(netip.MustParseAddr(addr), at.Port()))
	}
	for _, c := range []struct {
		addr  string
		only6 bool
		inUse bool
	}{
		{"127.0.0.1", false, true},
		{"0.0.0.0", false, true},
		{"::", false, true},
		{"::", true, false}, // there may be no IPv6 here
		{"127.0.0.2", false, false},
	} {
		id, errno := bind(c.addr, c.only6)
		want(t, c.addr+" is in use", errno == syscall.EADDRINUSE, c.inUse)
		must(t, p.d.DestroyID(id))
	}
	must(t, p.d.DestroyID(listener))
	_, errno := bind("127.0.0.1", false)
	must(t, errno)

	all := p.id(3)
	must(t, p.d.BindAddr(all, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	must(t, p.d.Listen(all))
	at, _, errno = p.d.AddressesOf(all)
	must(t, errno)
	_, errno = bind("127.0.0.1", false)
	want(t, "one of all addresses", errno, syscall.EADDRINUSE)
}
