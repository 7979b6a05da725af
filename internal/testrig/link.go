package testrig

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Link joins two UDP sockets in memory. In a synctest bubble its time is virtual.
type Link struct {
	Delay time.Duration // of each way
	Rate  int           // bytes a second of each way; 0: no limit
	Lose  func() bool   // whether the next packet is lost; nil: none is
}

// Lossy returns a Lose that loses a part of the packets, in an order of its own for each seed.
func Lossy(part float64, seed uint64) func() bool {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64() < part
	}
}

// Sockets returns the two ends.
func (l Link) Sockets() (a, b *Socket) {
	a, b = l.socket(1), l.socket(2)
	a.peer, b.peer = b, a
	return a, b
}

func (l Link) socket(n byte) *Socket {
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 4000+uint16(n))
	return &Socket{link: l, at: at, in: make(chan datagram, 1<<14), closed: make(chan struct{})}
}

// A Socket is one end of a Link. It does what a *net.UDPConn does.
type Socket struct {
	link   Link
	at     netip.AddrPort
	peer   *Socket
	in     chan datagram
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	free time.Time // when the way from here has room for another packet
}

type datagram struct {
	b  []byte
	at time.Time // when it arrives
}

// WriteToUDPAddrPort sends to the other end, wherever that is said to be.
func (s *Socket) WriteToUDPAddrPort(b []byte, _ netip.AddrPort) (int, error) {
	if s.link.Lose != nil && s.link.Lose() {
		return len(b), nil
	}
	select {
	case s.peer.in <- datagram{append([]byte(nil), b...), s.leaves(len(b)).Add(s.link.Delay)}:
	default: // the link is full
	}
	return len(b), nil
}

// leaves returns when so many bytes are on their way.
func (s *Socket) leaves(n int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	if s.link.Rate > 0 {
		s.free = s.free.Add(time.Duration(n) * time.Second / time.Duration(s.link.Rate))
	}
	return s.free
}

// ReadFromUDPAddrPort waits for a packet.
func (s *Socket) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		select {
		case d := <-s.in:
			if s.waits(time.Until(d.at)) {
				return copy(b, d.b), s.peer.at, nil
			}
		case <-s.closed:
			return 0, netip.AddrPort{}, net.ErrClosed
		}
	}
}

// waits reports whether the socket was still open at the end.
func (s *Socket) waits(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	after := time.NewTimer(d)
	defer after.Stop()
	select {
	case <-after.C:
		return true
	case <-s.closed:
		return false
	}
}

// LocalAddr is the address of this end.
func (s *Socket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(s.at) }

// Close has both directions end here.
func (s *Socket) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
