package capture

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// A UDPSocket is a socket of UDP, as *net.UDPConn is. Its LocalAddr is a *net.UDPAddr.
type UDPSocket interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// TapUDP returns a socket that does what s does and records the datagrams that leave, before they are sent, and those
// that arrive, such as the packets of SCTP in UDP. Where s is bound to all addresses, the record has as its address
// the one from which the system would send to the peer. An error of w does not affect the socket: w.Flush returns it.
func TapUDP(s UDPSocket, w *Writer) UDPSocket {
	t := &tapUDP{UDPSocket: s, w: w, routes: make(map[netip.Addr]netip.Addr)}
	if a, ok := s.LocalAddr().(*net.UDPAddr); ok {
		t.local = unmapped(a.AddrPort())
	}
	return t
}

// maxRoutes bounds the peers whose route a tap remembers.
const maxRoutes = 1024

// A tapUDP is a socket that is recorded.
type tapUDP struct {
	UDPSocket
	w     *Writer
	local netip.AddrPort

	mu     sync.Mutex
	routes map[netip.Addr]netip.Addr // own addresses by that of the peer
}

func (t *tapUDP) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, from, err := t.UDPSocket.ReadFromUDPAddrPort(b)
	if err == nil {
		_ = t.w.Datagram(Backward, from, t.own(from), time.Time{}, b[:n])
	}
	return n, from, err
}

func (t *tapUDP) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	_ = t.w.Datagram(Forward, t.own(to), to, time.Time{}, b)
	return t.UDPSocket.WriteToUDPAddrPort(b, to)
}

// own is the address of the socket, as a peer knows it.
func (t *tapUDP) own(peer netip.AddrPort) netip.AddrPort {
	if !t.local.Addr().IsUnspecified() {
		return t.local
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.routes[peer.Addr()]
	if !ok {
		if len(t.routes) >= maxRoutes {
			clear(t.routes)
		}
		a = routeTo(peer)
		t.routes[peer.Addr()] = a
	}
	return netip.AddrPortFrom(a, t.local.Port())
}

// routeTo is the address that the system sends to a peer from; where it has none, the unspecified one of the peer's
// kind.
func routeTo(peer netip.AddrPort) netip.Addr {
	a, err := lowerlayer.Route(peer)
	switch {
	case err == nil:
		return a
	case peer.Addr().Unmap().Is4():
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// tapConnected records a socket that knows one peer.
func tapConnected(conn net.Conn, local *net.UDPAddr, w *Writer) (net.Conn, error) {
	remote, ok := conn.RemoteAddr().(*net.UDPAddr)
	if !ok {
		return nil, fmt.Errorf("capture: %v is not an address of UDP", conn.RemoteAddr())
	}
	return &tapDatagrams{conn, w, local.AddrPort(), remote.AddrPort()}, nil
}

// A tapDatagrams is a connected socket that is recorded.
type tapDatagrams struct {
	net.Conn
	w             *Writer
	local, remote netip.AddrPort
}

func (t *tapDatagrams) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if err == nil {
		_ = t.w.Datagram(Backward, t.remote, t.local, time.Time{}, b[:n])
	}
	return n, err
}

func (t *tapDatagrams) Write(b []byte) (int, error) {
	_ = t.w.Datagram(Forward, t.local, t.remote, time.Time{}, b)
	return t.Conn.Write(b)
}
