package datagram

import (
	"errors"
	"net"
	"net/netip"
)

// receiveBuffer is what the socket asks the kernel for, in bytes: datagrams that come while there is no room are lost.
// The kernel gives as much as it lets anybody have.
const receiveBuffer = 4 << 20

// A Conn is what a Socket needs of a *net.UDPConn.
type Conn interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// A Socket is a port of UDP, on all addresses of this host. Its methods may be called by any goroutine.
type Socket struct{ conn Conn }

// Listen opens a Socket with a port that the kernel chooses. If wrap is set, the Socket uses what that returns.
func Listen(wrap func(Conn) Conn) (*Socket, error) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(receiveBuffer)
	if wrap == nil {
		return &Socket{conn}, nil
	}
	return &Socket{wrap(conn)}, nil
}

// Port is its number.
func (s *Socket) Port() uint16 {
	at, _ := s.conn.LocalAddr().(*net.UDPAddr)
	return at.AddrPort().Port()
}

// Close ends Serve, and what waits in Send.
func (s *Socket) Close() error { return s.conn.Close() }

// Send sends a packet: a header, and what follows it. It waits while the kernel has no room. An error says that it was
// not sent, and of others nobody hears.
func (s *Socket) Send(to netip.AddrPort, packet []byte) error {
	_, err := s.conn.WriteToUDPAddrPort(packet, to)
	return err
}

// Serve gives each datagram that comes to take, one after the other, until the Socket is closed. The payload is valid
// during the call. What is not ours is dropped, and so is what does not come from the port that it says that it comes
// from.
func (s *Socket) Serve(take func(h *Header, from netip.Addr, payload []byte)) {
	b := make([]byte, HeaderLen+MTU+1) // one more, to know what is too long
	var h Header
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var payload []byte
		var ok bool
		if h, payload, ok = Parse(b[:n]); err == nil && ok && h.Source>>8 == uint32(from.Port()) {
			take(&h, from.Addr(), payload)
		}
	}
}
