package tcp

import (
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// A Path is what TCP has learned of the way to the peer.
type Path struct {
	RTT    time.Duration // smoothed, of the way there and back
	Var    time.Duration // by how much it varies
	Unsent bool          // bytes that were written are not all sent
	Old    bool          // the times may be those of the handshake: a TCP in user space may measure nothing later
}

// Longest returns how long the way there and back may take. The variation counts as it does for
// a retransmission timeout (RFC 6298, section 2).
func (p Path) Longest() time.Duration { return p.RTT + 4*p.Var }

// Path asks the system, or else a TCP in user space; ok is false where nobody has an estimate. Of a connection with a
// method NetConn, as tls.Conn has, it is the path of the one below.
func (c *Conn) Path() (p Path, ok bool) {
	if c.base != nil {
		return c.base.path()
	}
	return PathOver(basis(c.Conn))
}

// PathOver asks a lower layer in user space, of TCP or not. ok is false where it has no estimate.
func PathOver(lower any) (p Path, ok bool) {
	if u, tells := lower.(lowerlayer.Unsent); tells {
		p.Unsent = u.Unsent()
	}
	if r, tells := lower.(lowerlayer.RoundTrip); tells {
		p.RTT, p.Old = r.RoundTrip(), true
	}
	return p, p.RTT > 0
}

// PathOf is Path for a connection that has no Conn.
func PathOf(c net.Conn) (p Path, ok bool) { return newRaw(basis(c)).path() }
