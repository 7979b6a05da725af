package startup

import (
	"errors"
	"io"
	"slices"
)

// isGone reports whether an error of a connection means that the peer has closed or reset it. Any other is the
// connection's own, such as that of a certificate that TLS does not trust, and says nothing about what the peer knows.
func isGone(err error) bool {
	return slices.ContainsFunc(goneErrors, func(gone error) bool { return errors.Is(err, gone) })
}

// streamEnds are the errors of connections that are no sockets: io.ErrUnexpectedEOF that of TLS whose TCP connection
// has ended, io.ErrClosedPipe that of a write to a net.Pipe.
var streamEnds = []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe}
