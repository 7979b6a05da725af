//go:build linux && (amd64 || arm64)

package datagram

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
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
	conn Conn // that is wrapped, or nil
	port uint16
	fd   int  // of the socket otherwise
	six  bool // that is of IPv6, and has IPv4 as well
	last atomic.Pointer[scope]

	closing  atomic.Bool
	polls    atomic.Uint32 // since Serve has looked
	away     atomic.Bool   // it stands back
	expected atomic.Bool   // by somebody who waits
	nudged   chan struct{} // ends a rest

	taking sync.Mutex // whoever reads a datagram gives it to take before the next is read
	take   Taker
	file   *os.File                  // while Serve waits
	packet [HeaderLen + MTU + 1]byte // one more, to know what is too long
	header Header
	from   syscall.RawSockaddrAny
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
	at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	s := &Socket{port: at.Port(), six: at.Addr().Is6(), nudged: make(chan struct{}, 1)}
	if wrap != nil {
		s.conn = wrap(conn)
		return s, nil
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	_ = raw.Control(func(fd uintptr) { s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Port is its number.
func (s *Socket) Port() uint16 { return s.port }

// Close ends Serve. No Send may be under way.
func (s *Socket) Close() error {
	if s.conn != nil {
		return s.conn.Close()
	}
	s.taking.Lock()
	defer s.taking.Unlock()
	s.closing.Store(true)
	if s.take == nil {
		s.release()
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	s.nudge()
	return nil
}

// release closes the descriptor, if that was not done. The caller holds s.taking.
func (s *Socket) release() {
	if s.fd >= 0 {
		_ = syscall.Close(s.fd)
	}
	s.fd = -1
}

// Send sends a packet: a header, and what follows it. It waits while the kernel has no room. An error says that it was
// not sent, and of others nobody hears.
func (s *Socket) Send(to netip.AddrPort, packet []byte) error {
	if s.conn != nil {
		_, err := s.conn.WriteToUDPAddrPort(packet, to)
		return err
	}
	return s.send(to, packet)
}

// Serve gives each datagram that comes to take, one after the other, until the Socket is closed. What is not ours is
// dropped, and so is what does not come from the port that it says that it comes from.
func (s *Socket) Serve(take Taker) {
	s.taking.Lock()
	s.take = take
	s.taking.Unlock()
	if s.conn != nil {
		s.serveWrapped()
		return
	}
	for !s.closing.Load() {
		s.wait()
		s.stayAway()
	}
	s.taking.Lock()
	defer s.taking.Unlock()
	s.release()
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
	s.polls.Add(1)
	if s.conn != nil || !s.taking.TryLock() {
		return false
	}
	defer s.taking.Unlock()
	return s.take != nil && s.receive()
}

// give gives a datagram of n bytes to take, if it is one of ours.
func (s *Socket) give(n int, from netip.AddrPort) {
	h, payload, ok := Parse(s.packet[:n])
	if ok && h.Source>>8 == uint32(from.Port()) {
		s.header = h
		s.take(&s.header, from.Addr(), payload)
	}
}
