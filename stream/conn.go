package stream

import (
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

var errClosed = net.ErrClosed

// A Conn is a byte stream in each direction, over a QP. It is a net.Conn, an io.ReaderFrom and an io.WriterTo. Its
// methods are safe for concurrent use.
type Conn struct {
	resources
	network       string
	local, remote net.Addr

	rd, wr direction
	out    output // of the call that is in wr

	mu     sync.Mutex // guards all that follows
	ep     *rsockets.Endpoint
	wc     []iwarp.WC
	again  []iwarp.RecvWR // receives to be posted again
	poller poller
	fault  error // why no more words come
	closed bool  // Close was called
	alive  keepAlive
	maps   []*Mapping // by their entry in the peer's table
}

// made reports whether the Conn is neither nil nor a zero value.
func (c *Conn) made() bool { return c != nil && c.ep != nil }

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr {
	if !c.made() {
		return nil
	}
	return c.local
}

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr {
	if !c.made() {
		return nil
	}
	return c.remote
}

// QP returns the QP that carries the stream, for its counters and what was negotiated. To post to it breaks the
// stream.
func (c *Conn) QP() *iwarp.QP {
	if !c.made() {
		return nil
	}
	return c.qp
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// newConn makes a Conn of a connected QP, once both ends have said Hello.
func (r *resources) newConn(network string, ours, peer rsockets.Hello) *Conn {
	c := &Conn{
		resources: *r, network: network, local: r.qp.LocalAddr(), remote: r.qp.RemoteAddr(),
		out: output{wc: make([]iwarp.WC, batch)},
		ep:  rsockets.NewEndpoint(ours, peer, r.ring.Len(), maxPiece),
		wc:  make([]iwarp.WC, batch), again: make([]iwarp.RecvWR, 0, batch),
		maps: make([]*Mapping, peer.Maps),
	}
	c.rd.init()
	c.wr.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announce() // the second half of the ring; of an MPA Initiator it is also the first FPDU, for which the peer waits
	return c
}
