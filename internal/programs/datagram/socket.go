//go:build linux && (amd64 || arm64)

package datagram

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
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
type Socket struct {
	conn Conn
	raw  syscall.RawConn // that Poll reads, or nil

	taking sync.Mutex // whoever reads a datagram gives it to take before the next is read
	take   Taker
	packet [HeaderLen + MTU + 1]byte // one more, to know what is too long
	header Header
	from   syscall.RawSockaddrAny
	came   bool
	once   func(fd uintptr) // is made once, so that Poll allocates nothing
}

// A Taker gets a datagram, from one call to the next. The payload is valid during the call.
type Taker func(h *Header, from netip.Addr, payload []byte)

// Listen opens a Socket with a port that the kernel chooses. If wrap is set, the Socket uses what that returns.
func Listen(wrap func(Conn) Conn) (*Socket, error) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(receiveBuffer)
	s := &Socket{conn: conn}
	if wrap != nil {
		s.conn = wrap(conn)
		return s, nil
	}
	s.once = func(fd uintptr) { s.came = s.receive(fd) }
	s.raw, err = conn.SyscallConn()
	return s, err
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

// Serve gives each datagram that comes to take, one after the other, until the Socket is closed. What is not ours is
// dropped, and so is what does not come from the port that it says that it comes from.
func (s *Socket) Serve(take Taker) {
	s.taking.Lock()
	s.take = take
	s.taking.Unlock()
	if s.raw == nil {
		s.serveWrapped()
		return
	}
	_ = s.raw.Read(func(fd uintptr) bool {
		s.taking.Lock()
		defer s.taking.Unlock()
		for s.receive(fd) {
		}
		return false
	})
}

func (s *Socket) serveWrapped() {
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(s.packet[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			s.give(n, from)
		}
	}
}

// Poll takes a datagram that has come, and reports whether there was one. Who polls for it need not wait until the
// goroutine of Serve has a processor.
func (s *Socket) Poll() bool {
	if s.raw == nil || !s.taking.TryLock() {
		return false
	}
	defer s.taking.Unlock()
	s.came = false
	if s.take != nil {
		_ = s.raw.Control(s.once)
	}
	return s.came
}

// give gives a datagram of n bytes to take, if it is one of ours.
func (s *Socket) give(n int, from netip.AddrPort) {
	h, payload, ok := Parse(s.packet[:n])
	if ok && h.Source>>8 == uint32(from.Port()) {
		s.header = h
		s.take(&s.header, from.Addr(), payload)
	}
}
