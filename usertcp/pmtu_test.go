package usertcp

import (
	"io"
	"net/netip"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A narrow link has a router behind it whose next link carries less: it drops larger packets, and says so.
type narrow struct {
	Link
	mu    sync.Mutex
	mtu   int // zero: as wide as the link
	sizes []int
	say   chan []byte
}

func (n *narrow) narrowTo(mtu int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mtu, n.sizes = mtu, nil
}

func (n *narrow) Send(packet []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mtu > 0 && len(packet) > n.mtu {
		n.say <- tooBig(packet, n.mtu)
		return
	}
	if s, ok := parseSegment(packet); ok && len(s.payload) > 0 {
		n.sizes = append(n.sizes, len(s.payload))
	}
	n.Link.Send(packet)
}

func (n *narrow) Receive(deliver func([]byte)) error {
	var mu sync.Mutex
	done := make(chan bool)
	defer close(done)
	go func() {
		for {
			select {
			case b := <-n.say:
				mu.Lock()
				deliver(b)
				mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	return n.Link.Receive(func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		deliver(b)
	})
}

// tooBig is what a router says of a packet: ICMP, fragmentation needed (RFC 1191).
func tooBig(packet []byte, mtu int) []byte {
	const quoted = header.IPv4MinimumSize + 8
	b := make([]byte, header.IPv4MinimumSize+header.ICMPv4MinimumSize+quoted)
	was := header.IPv4(packet)
	ip := header.IPv4(b)
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(header.ICMPv4ProtocolNumber),
		SrcAddr: was.DestinationAddress(), DstAddr: was.SourceAddress()})
	setIPSum(ip)
	icmp := header.ICMPv4(ip.Payload())
	icmp.SetType(header.ICMPv4DstUnreachable)
	icmp.SetCode(header.ICMPv4FragmentationNeeded)
	icmp.SetMTU(uint16(mtu))
	copy(icmp.Payload(), packet[:quoted])
	icmp.SetChecksum(0)
	icmp.SetChecksum(^checksum.Checksum(icmp, 0))
	return b
}

// TestPathMTU has the path become narrower during a connection: what was written for the wide one is cut, and all
// arrives; then the EMSS is that of the narrow one, and segments are aligned again.
func TestPathMTU(t *testing.T) {
	one, other := Pipe(1500, Path{}, Path{})
	link := &narrow{Link: one, say: make(chan []byte, 10_000)}
	a, err := pairEnd(Config{}, link, "192.0.2.1")
	must(t, err)
	b, err := New(Config{Link: other, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	must(t, err)
	t.Cleanup(func() {
		must(t, a.Close())
		must(t, b.Close())
	})
	out, in := connect(t, a, b, "192.0.2.2:7174")
	send := func(n int) {
		for range n {
			f := make([]byte, out.EMSS())
			writeAll(t, out, [][]byte{f})
			_, err := io.ReadFull(in, f)
			must(t, err)
		}
	}
	send(10)
	link.narrowTo(1000)
	for range 100 { // it is cut, until the news is there
		if send(1); out.EMSS() != 1420 {
			break
		}
	}
	if out.EMSS() != 1000-40-40 {
		t.Fatalf("EMSS %d", out.EMSS())
	}
	link.narrowTo(1000)
	send(20)
	link.mu.Lock()
	defer link.mu.Unlock()
	for _, n := range link.sizes {
		if n != 920 && n != 1420-920 { // the latter is the rest of what was cut, sent again
			t.Errorf("segments of %v bytes", link.sizes)
			break
		}
	}
}
