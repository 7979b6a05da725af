package usertcp

import (
	"errors"
	"net"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// errorOf is the error of package syscall or net that says the same.
func errorOf(err tcpip.Error) error {
	switch err.(type) {
	case *tcpip.ErrConnectionReset:
		return syscall.ECONNRESET
	case *tcpip.ErrConnectionRefused:
		return syscall.ECONNREFUSED
	case *tcpip.ErrAborted, *tcpip.ErrConnectionAborted:
		return syscall.ECONNABORTED
	case *tcpip.ErrTimeout:
		return syscall.ETIMEDOUT
	case *tcpip.ErrClosedForSend:
		return syscall.EPIPE
	case *tcpip.ErrHostUnreachable, *tcpip.ErrHostDown:
		return syscall.EHOSTUNREACH
	case *tcpip.ErrNetworkUnreachable, *tcpip.ErrNoNet:
		return syscall.ENETUNREACH
	case *tcpip.ErrPortInUse:
		return syscall.EADDRINUSE
	case *tcpip.ErrBadLocalAddress:
		return syscall.EADDRNOTAVAIL
	case *tcpip.ErrNotConnected:
		return syscall.ENOTCONN
	case *tcpip.ErrInvalidEndpointState:
		return net.ErrClosed
	}
	return errors.New(err.String())
}
