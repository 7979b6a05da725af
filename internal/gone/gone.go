// Package gone tells from an error of a connection what has become of the peer, on every system and for connections that are
// no sockets.
package gone

import (
	"errors"
	"io"
	"slices"
	"syscall"
)

// Peer reports whether an error of a connection means that the peer has closed or reset it. Any other is the
// connection's own, such as that of a certificate that TLS does not trust, and says nothing about what the peer knows.
func Peer(err error) bool { return Reset(err) || isOne(err, ends) }

// Reset reports whether it means that the peer has reset it.
func Reset(err error) bool { return isOne(err, resets) }

func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// ends are those of a close: io.ErrUnexpectedEOF that of TLS whose TCP connection has ended, io.ErrClosedPipe that of a
// write to a net.Pipe.
var ends = append(aborts, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNABORTED, syscall.EPIPE)
