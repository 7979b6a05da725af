package iwarp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A seat is a connection with nothing but an address.
type seat struct {
	net.Conn
	from string
}

func (s *seat) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(s.from), 1))
}

func (s *seat) Close() error { return nil }

// TestAcceptPassesOver: Accept does not return a Request whose connection was closed to make room, though it was
// offered already, and gives its slot back.
func TestAcceptPassesOver(t *testing.T) {
	l := newListener(testrig.NewListener("here"), ListenConfig{MaxPerSource: 2})
	seats := []*seat{{from: "192.0.2.1"}, {from: "192.0.2.2"}, {from: "192.0.2.2"}}
	requests := make([]*Request, len(seats))
	l.ready = make(chan *Request, len(requests))
	for i, s := range seats {
		requests[i] = &Request{slot: l.enter(s)}
		requests[i].slot.Arrived(func() {})
		requests[i].slot.AwaitAccept()
		l.ready <- requests[i]
	}
	if !l.halfOpen.EvictOne() {
		t.Fatal("none was closed")
	}
	for _, want := range []*Request{requests[0], requests[2]} {
		if got, err := l.Accept(testrig.Within(t)); got != want || err != nil {
			t.Errorf("Accept: %p (%v), want %p", got, err, want)
		}
	}
	if l.enter(seats[1]) == nil || l.enter(seats[1]) != nil {
		t.Error("its address may have one connection more, and has none or two")
	}
}
