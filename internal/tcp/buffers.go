package tcp

import (
	"io"
	"net"
)

// A buffersWriter is a connection that is no socket and still writes several slices as one: it may record what passes,
// or put it into records.
type buffersWriter interface {
	WriteBuffers(v *net.Buffers) (int64, error)
}

// WriteBuffers writes all of v, and consumes what was written: in one go on a socket of the standard library's, or a
// connection that has such a method, and slice by slice on others, also where a socket is embedded in one:
// net.Buffers would write to that, past the Write of the connection. Bytes that were read ahead do not affect it.
func WriteBuffers(c net.Conn, v *net.Buffers) (int64, error) {
	c, _ = unwrap(c)
	if w, ok := c.(buffersWriter); ok {
		return w.WriteBuffers(v)
	}
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return v.WriteTo(c)
	}
	return v.WriteTo(writerOnly{c})
}

// writerOnly hides all other methods than Write.
type writerOnly struct{ io.Writer }
