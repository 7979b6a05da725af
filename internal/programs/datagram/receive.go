//go:build linux && (amd64 || arm64)

package datagram

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"
)

// receive reads a datagram, if there is one, and gives it to take. Package net waits for one, or allocates.
func (s *Socket) receive() bool {
	length := uint32(unsafe.Sizeof(s.from))
	n, _, errno := syscall.Syscall6(syscall.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&s.packet)), uintptr(len(s.packet)),
		syscall.MSG_DONTWAIT, uintptr(unsafe.Pointer(&s.from)), uintptr(unsafe.Pointer(&length)))
	if errno == 0 {
		s.give(int(n), addrPort(&s.from))
	}
	return errno == 0 || errno == syscall.ECONNREFUSED || errno == syscall.EINTR
}

// addrPort is what the kernel says of a sender.
func addrPort(a *syscall.RawSockaddrAny) netip.AddrPort {
	switch a.Addr.Family {
	case syscall.AF_INET:
		in := (*syscall.RawSockaddrInet4)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), port(&in.Port))
	case syscall.AF_INET6:
		in := (*syscall.RawSockaddrInet6)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr), port(&in.Port))
	}
	return netip.AddrPort{}
}

// port is in network order there.
func port(p *uint16) uint16 { return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(p))[:]) }
