package usertcp

import (
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// TestMartian: what no link may bring is neither shown nor given to gVisor, which would write to standard error.
func TestMartian(t *testing.T) {
	for to, want := range map[string]bool{"127.0.0.1": true, "192.0.2.1": false} {
		p := make(header.IPv4, header.IPv4MinimumSize)
		p.Encode(&header.IPv4Fields{TotalLength: header.IPv4MinimumSize, TTL: 64, Protocol: 6})
		copy(p[12:], netip.MustParseAddr("192.0.2.9").AsSlice())
		copy(p[16:], netip.MustParseAddr(to).AsSlice())
		if martian(p) != want {
			t.Errorf("to %s: %t", to, !want)
		}
		copy(p[12:], p[16:])
		copy(p[16:], netip.MustParseAddr("192.0.2.9").AsSlice())
		if martian(p) != want || martian(p[:header.IPv4MinimumSize-1]) {
			t.Errorf("from %s: want %t, and false for a part of it", to, want)
		}
	}
	for to, want := range map[string]bool{"::1": true, "2001:db8::1": false} {
		p := make(header.IPv6, header.IPv6MinimumSize)
		p[0], p[8] = 6<<4, 0x20
		copy(p[24:], netip.MustParseAddr(to).AsSlice())
		if martian(p) != want || martian(p[:header.IPv6MinimumSize-1]) {
			t.Errorf("to %s: want %t, and false for a part of it", to, want)
		}
	}
	if martian(nil) {
		t.Error("of nothing")
	}
}

// A bringer is a Link that brings packets when it is told to.
type bringer struct {
	*PipeEnd
	packets [][]byte
	begin   chan struct{}
	brought chan struct{}
}

func (b *bringer) Receive(deliver func([]byte)) error {
	<-b.begin
	for _, p := range b.packets {
		deliver(p)
	}
	close(b.brought)
	return b.PipeEnd.Receive(deliver)
}

// TestMartianIsDropped: gVisor, which would write to standard error, sees none of them.
func TestMartianIsDropped(t *testing.T) {
	end, _ := Pipe(1500, Path{}, Path{})
	link := &bringer{PipeEnd: end, begin: make(chan struct{}), brought: make(chan struct{})}
	for _, to := range []string{"127.0.0.1", "10.0.0.1"} {
		p := make(header.IPv4, header.IPv4MinimumSize)
		p.Encode(&header.IPv4Fields{TotalLength: header.IPv4MinimumSize, TTL: 64, Protocol: 6})
		copy(p[12:], netip.MustParseAddr("10.0.0.2").AsSlice())
		copy(p[16:], netip.MustParseAddr(to).AsSlice())
		p.SetChecksum(^p.CalculateChecksum())
		link.packets = append(link.packets, p)
	}
	s, err := New(Config{Link: link, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}})
	must(t, err)
	close(link.begin)
	<-link.brought
	if n := s.net.Stats().IP.PacketsReceived.Value(); n != 1 {
		t.Errorf("gVisor has seen %d packets, want the second", n)
	}
	must(t, s.Close())
}
