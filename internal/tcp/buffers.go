package tcp

import "net"

// A buffersWriter is a connection that is not TCP's own and still writes several
// slices as one: such as records what passes, or puts it into records.
type buffersWriter interface {
	WriteBuffers(v *net.Buffers) (int64, error)
}

// WriteBuffers writes all of v, and consumes what was written: in one go on a TCP
// connection, or one that has such a method, and slice by slice on others. Octets that were
// read ahead do not affect it.
func WriteBuffers(c net.Conn, v *net.Buffers) (int64, error) {
	c, _ = unwrap(c)
	if w, ok := c.(buffersWriter); ok {
		return w.WriteBuffers(v)
	}
	return v.WriteTo(c)
}
