//go:build linux && (amd64 || arm64)

package datagram

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// send sends a packet, and waits for room.
func (s *Socket) send(to netip.AddrPort, packet []byte) error {
	var a syscall.RawSockaddrAny
	length, bytes := s.address(&a, to), unsafe.Pointer(unsafe.SliceData(packet))
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_SENDTO, uintptr(s.fd), uintptr(bytes), uintptr(len(packet)),
			syscall.MSG_DONTWAIT, uintptr(unsafe.Pointer(&a)), length)
		switch errno {
		case 0:
			return nil
		case syscall.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}, -1)
		case syscall.EINTR, syscall.ECONNREFUSED: // the latter is about an earlier one
		default:
			return errno
		}
	}
}

// address fills in what the kernel is told of an address, and returns its length.
func (s *Socket) address(a *syscall.RawSockaddrAny, to netip.AddrPort) uintptr {
	if !s.six {
		in := (*syscall.RawSockaddrInet4)(unsafe.Pointer(a))
		*in = syscall.RawSockaddrInet4{Family: syscall.AF_INET, Addr: to.Addr().Unmap().As4()}
		setPort(&in.Port, to.Port())
		return syscall.SizeofSockaddrInet4
	}
	in := (*syscall.RawSockaddrInet6)(unsafe.Pointer(a))
	*in = syscall.RawSockaddrInet6{Family: syscall.AF_INET6, Addr: to.Addr().As16(), Scope_id: s.scope(to.Addr().Zone())}
	setPort(&in.Port, to.Port())
	return syscall.SizeofSockaddrInet6
}

func setPort(at *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(at))[:], port)
}

// A scope is the number of an interface.
type scope struct {
	zone  string
	index uint32
}

// scope returns that of a zone. It asks the system again only for another than the last.
func (s *Socket) scope(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if last := s.last.Load(); last != nil && last.zone == zone {
		return last.index
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0
	}
	s.last.Store(&scope{zone, uint32(i.Index)})
	return uint32(i.Index)
}
