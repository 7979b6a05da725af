package sctpkernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const peelFlags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC

// openSocket returns a one-to-many socket that does not wait.
func openSocket(v6 bool) (int, error) {
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	switch err {
	case unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.EPROTOTYPE:
		return -1, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return fd, os.NewSyscallError("socket", err)
}

// sockaddr is an address for a socket of either family. An IPv4 address on one of IPv6 is written as such.
func sockaddr(a netip.AddrPort, v6 bool) unix.Sockaddr {
	if v6 {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope(a.Addr())}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().Unmap().As4()}
}

func bind(fd int, a netip.AddrPort, v6 bool) error {
	return os.NewSyscallError("bind", unix.Bind(fd, sockaddr(a, v6)))
}

func listen(fd int) error { return os.NewSyscallError("listen", unix.Listen(fd, unix.SOMAXCONN)) }

// connect begins an association. What comes of it is notified.
func connect(fd int, to netip.AddrPort, v6 bool) error {
	err := unix.Connect(fd, sockaddr(to, v6))
	if err == unix.EINPROGRESS {
		return nil
	}
	return os.NewSyscallError("connect", err)
}

// name returns a socket's address.
func name(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(zoned(netip.AddrFrom16(sa.Addr), sa.ZoneId), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("getsockname: %T", sa)
}

func setOption(fd, opt int, value []byte) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptString(fd, protocol, opt, string(value)))
}

// getOption fills value, which holds what the option is to be told of.
func getOption(fd, opt int, value []byte) error {
	return getsockopt(fd, protocol, opt, value)
}

func getsockopt(fd, level, opt int, value []byte) error {
	size := uint32(len(value))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return os.NewSyscallError("getsockopt", e)
	}
	return nil
}

// setBuffers asks for a window: SCTP's is half of the buffer. Only root is given more than net.core.rmem_max.
func setBuffers(fd, window int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, window) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, window)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, window)
}

// abortOnClose has the end of the descriptor abort what there still is. Without it the kernel delivers what was sent,
// and then shuts the association down.
func abortOnClose(fd int, on bool) error {
	var l unix.Linger
	if on {
		l.Onoff = 1
	}
	return os.NewSyscallError("setsockopt", unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &l))
}

func reuse(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
}

func onlyV6(fd int, on bool) error {
	n := 0
	if on {
		n = 1
	}
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, n))
}

// unacknowledged returns how much memory the messages take that were sent and not acknowledged, their own and the
// kernel's for them.
func unacknowledged(fd int) (int, error) {
	const fields, queued = 9, 5 // SK_MEMINFO_VARS, SK_MEMINFO_WMEM_QUEUED
	b := make([]byte, 4*fields)
	if err := getsockopt(fd, unix.SOL_SOCKET, unix.SO_MEMINFO, b); err != nil {
		return 0, err
	}
	return int(native.Uint32(b[4*queued:])), nil
}

// lastError returns what has gone wrong with an association that is lost, and nil if the kernel does not say.
func lastError(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || n == 0 {
		return nil
	}
	return unix.Errno(n)
}

// timedOut reports whether an association was lost because its peer has fallen silent.
func timedOut(err error) bool { return errors.Is(err, unix.ETIMEDOUT) }

// again reports whether a call would have to wait.
func again(err error) bool { return errors.Is(err, unix.EAGAIN) }

// sendmsg sends a message, which may be empty.
func sendmsg(fd int, data, control []byte) error {
	var iov unix.Iovec
	iov.Base = unsafe.SliceData(data)
	iov.SetLen(len(data))
	h := unix.Msghdr{Iov: &iov, Control: unsafe.SliceData(control)}
	h.SetIovlen(1)
	h.SetControllen(len(control))
	for {
		_, _, e := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), unix.MSG_NOSIGNAL)
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

// recvmsg receives into m.buf.
func recvmsg(fd int, m *inbound) error {
	var iov unix.Iovec
	iov.Base = unsafe.SliceData(m.buf)
	iov.SetLen(len(m.buf))
	var from unix.RawSockaddrAny
	h := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&from)), Namelen: unix.SizeofSockaddrAny,
		Iov: &iov, Control: &m.control[0]}
	h.SetIovlen(1)
	h.SetControllen(len(m.control))
	for {
		n, _, e := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), 0)
		switch e {
		case 0:
			m.n, m.flags, m.controlLen = int(n), int(h.Flags), int(h.Controllen)
			m.from = address(&from)
			return nil
		case unix.EINTR:
		default:
			return e
		}
	}
}

func address(a *unix.RawSockaddrAny) netip.AddrPort {
	switch a.Addr.Family {
	case unix.AF_INET:
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), swapped(v4.Port))
	case unix.AF_INET6:
		v6 := (*unix.RawSockaddrInet6)(unsafe.Pointer(a))
		return netip.AddrPortFrom(zoned(netip.AddrFrom16(v6.Addr), v6.Scope_id), swapped(v6.Port))
	}
	return netip.AddrPort{}
}

// swapped returns a port from a field in network order.
func swapped(n uint16) uint16 {
	b := native.AppendUint16(nil, n)
	return uint16(b[0])<<8 | uint16(b[1])
}
