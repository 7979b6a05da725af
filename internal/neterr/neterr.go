// Package neterr classifies the errors of connections: has the peer closed the connection, or reset it? It knows those
// of every system, and those of connections that are no sockets.
package neterr

import (
	"errors"
	"io"
	"slices"
	"syscall"
)

// PeerGone reports whether an error of a connection means that the peer has closed or reset it. Any other is the
// connection's own, such as that of a certificate that TLS does not trust, and says nothing about what the peer knows.
func PeerGone(err error) bool { return PeerReset(err) || isOne(err, ends) }

// PeerReset reports whether it means that the peer has reset it.
func PeerReset(err error) bool { return isOne(err, resets) }

func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// ends are those of a close: io.ErrUnexpectedEOF that of TLS whose TCP connection has ended, io.ErrClosedPipe that of a
// write to a net.Pipe.
var ends = append(aborts, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNABORTED, syscall.EPIPE)
