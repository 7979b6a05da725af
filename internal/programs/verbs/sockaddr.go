//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// SockaddrLen is the length of a struct sockaddr_storage, in bytes.
const SockaddrLen = 128

const (
	sockaddrIn4 = 16
	sockaddrIn6 = 28
)

// ParseSockaddr reads a struct sockaddr_in or sockaddr_in6.
func ParseSockaddr(b []byte) (a netip.AddrPort, ok bool) {
	if len(b) < sockaddrIn4 {
		return a, false
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.NativeEndian.Uint16(b); {
	case family == syscall.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), true
	case family == syscall.AF_INET6 && len(b) >= sockaddrIn6:
		ip := netip.AddrFrom16([16]byte(b[8:24])).Unmap()
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 && ip.Is6() {
			ip = ip.WithZone(zoneName(scope))
		}
		return netip.AddrPortFrom(ip, port), true
	}
	return a, false
}

func zoneName(scope uint32) string {
	if i, err := net.InterfaceByIndex(int(scope)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(scope), 10)
}

// PutSockaddr writes an address as a struct sockaddr_in or sockaddr_in6. An invalid one is all zeros.
func PutSockaddr(b *[SockaddrLen]byte, a netip.AddrPort) {
	clear(b[:])
	switch ip := a.Addr(); {
	case ip.Is4():
		binary.NativeEndian.PutUint16(b[:], syscall.AF_INET)
		copy(b[4:], ip.AsSlice())
	case ip.Is6():
		binary.NativeEndian.PutUint16(b[:], syscall.AF_INET6)
		copy(b[8:], ip.AsSlice())
		binary.NativeEndian.PutUint32(b[24:], zoneOf(ip))
	default:
		return
	}
	binary.BigEndian.PutUint16(b[2:], a.Port())
}
