package live

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/capture"
)

const (
	// maxPacket is more than the largest segment that GRO and TSO make, which is 512 KiB with BIG TCP.
	maxPacket = 1<<20 - vlanLen

	vlanLen      = 4  // of a tag
	addressesLen = 12 // of Ethernet, in front of a tag
)

// A Source gives the packets of an interface, each once: lo shows each to the kernel's listeners twice, as it leaves
// and as it comes. It is not safe for concurrent use, but for Interrupt.
type Source struct {
	file   *os.File
	raw    syscall.RawConn
	on     int // the interface's index, 0 for all
	idle   func() error
	cooked bool // packets begin with IP, and not with the link's header

	space   []byte // for a tag, and a packet
	control [256]byte
	packet  capture.Packet
	drops   uint32 // of the socket, as of the last packet
	told    uint64 // of them, to the caller
}

// Open begins to capture on an interface. The error is an fs.ErrPermission without CAP_NET_RAW.
func Open(name string, cfg Config) (*Source, error) {
	on := new(net.Interface)
	if name != Any {
		var err error
		if on, err = net.InterfaceByName(name); err != nil {
			return nil, err
		}
	}
	s := &Source{on: on.Index, idle: cfg.Idle, space: make([]byte, vlanLen+maxPacket), cooked: on.Index == 0}
	fd, err := s.socket(on, cmp.Or(cfg.Buffer, DefaultBuffer))
	if err != nil {
		return nil, err
	}
	s.file = os.NewFile(uintptr(fd), "packet socket of "+name)
	if s.raw, err = s.file.SyscallConn(); err != nil {
		_ = s.file.Close()
	}
	return s, err
}

// socket opens a socket for packets with their link's header, or without one if that is no Ethernet.
func (s *Source) socket(on *net.Interface, buffer int) (int, error) {
	for {
		kind := unix.SOCK_RAW
		if s.cooked {
			kind = unix.SOCK_DGRAM
		}
		fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return -1, os.NewSyscallError("socket", err)
		}
		hardware, err := bind(fd, on, buffer)
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		if s.cooked || hardware == unix.ARPHRD_ETHER || hardware == unix.ARPHRD_LOOPBACK {
			return fd, nil
		}
		s.cooked = true
		_ = unix.Close(fd)
	}
}

// bind begins to receive, and returns the kind of hardware.
func bind(fd int, on *net.Interface, buffer int) (hardware uint16, err error) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	for _, o := range [...]struct{ level, name int }{
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS}, {unix.SOL_SOCKET, unix.SO_RXQ_OVFL}, {unix.SOL_PACKET, unix.PACKET_AUXDATA},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, 1); err != nil {
			return 0, os.NewSyscallError("setsockopt", err)
		}
	}
	switch {
	case on.Flags&net.FlagLoopback != 0: // the copies that leave would take room; older kernels bring them all the same
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	case on.Index > 0: // what passes for others is seen at a port that mirrors
		_ = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(on.Index), Type: unix.PACKET_MR_PROMISC})
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: on.Index}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	at, err := unix.Getsockname(fd)
	if link, ok := at.(*unix.SockaddrLinklayer); ok {
		return link.Hatype, nil
	}
	return 0, os.NewSyscallError("getsockname", err)
}

// bigEndian is a 16-bit number as the network has it in memory.
func bigEndian(v uint16) uint16 { return nativeOrder.Uint16([]byte{byte(v >> 8), byte(v)}) }

// Next returns the next packet, which is valid until Next is called again. The error after Interrupt is io.EOF.
func (s *Source) Next() (*capture.Packet, error) {
	for {
		ok, err := s.receive()
		if err != nil || ok {
			return &s.packet, err
		}
	}
}

// receive waits for a packet, and reports whether it is one that counts.
func (s *Source) receive() (ok bool, err error) {
	idle := false
	failed := s.raw.Read(func(fd uintptr) bool {
		ok, err = s.take(int(fd))
		if !errors.Is(err, unix.EAGAIN) {
			return true
		}
		if err = nil; !idle && s.idle != nil {
			idle = true
			err = s.idle()
		}
		return err != nil
	})
	switch {
	case errors.Is(failed, os.ErrDeadlineExceeded), errors.Is(failed, os.ErrClosed):
		return false, io.EOF
	case failed != nil:
		return false, failed
	case errors.Is(err, unix.ENETDOWN): // and may come up again
		if _, gone := net.InterfaceByIndex(s.on); gone != nil {
			return false, fmt.Errorf("the interface is gone: %w", err)
		}
		return false, nil
	}
	return ok, err
}

// take takes a packet from the socket.
func (s *Source) take(fd int) (ok bool, err error) {
	n, control, _, from, err := unix.RecvmsgBuffers(fd, [][]byte{s.space[vlanLen:]}, s.control[:], unix.MSG_TRUNC)
	if err != nil {
		return false, err
	}
	p := &s.packet
	data := s.space[vlanLen:][:min(n, maxPacket)]
	p.Time = time.Time{}
	about := s.about(s.control[:control])
	link, _ := from.(*unix.SockaddrLinklayer)
	switch {
	case link == nil, link.Pkttype == unix.PACKET_OUTGOING && link.Hatype == unix.ARPHRD_LOOPBACK:
		return false, nil
	case s.cooked && link.Protocol != bigEndian(unix.ETH_P_IP) && link.Protocol != bigEndian(unix.ETH_P_IPV6):
		return false, nil
	}
	p.Link, p.OrigLen = capture.LinkRaw, n
	if !s.cooked {
		p.Link = capture.LinkEthernet
		data = about.tagged(s.space, data)
		p.OrigLen += len(data) - min(n, maxPacket)
	}
	p.Number++
	p.Data = data
	if p.Time.IsZero() {
		p.Time = time.Now().UTC()
	}
	p.Dropped = uint64(s.drops) - s.told
	s.told = uint64(s.drops)
	return true, nil
}

// Interrupt has Next return io.EOF, now and from now on.
func (s *Source) Interrupt() { _ = s.file.SetReadDeadline(time.Unix(1, 0)) }

// Close ends the capture.
func (s *Source) Close() error { return s.file.Close() }
