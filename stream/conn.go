package stream

import (
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

var errClosed = net.ErrClosed

// A Conn is a stream of octets in each direction, over a QP. It is a net.Conn, an io.ReaderFrom and an io.WriterTo. Any
// goroutine may call its methods.
type Conn struct {
	resources
	network       string
	local, remote net.Addr

	// One call of each direction at a time has its gate. What it alone uses is after that.
	rd, wr           deadline
	reading, writing gate
	out              output

	mu      sync.Mutex
	ep      *rsockets.Endpoint
	word    [rsockets.WordLen]byte
	wc      []iwarp.WC
	again   []iwarp.RecvWR // receives to be posted again
	leading bool           // a call waits for completions, for all
	changed chan struct{}  // closed when it has some, or stops; nil: nobody waits for that
	fault   error          // why nothing more comes
	closed  bool
	alive   keepAlive
	maps    []*Mapping // by their entry in the peer's table
}

// LocalAddr returns our address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// QP returns the QP that carries the stream, for its counters and what was negotiated. Whoever posts to it breaks the stream.
func (c *Conn) QP() *iwarp.QP { return c.qp }

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// begin makes a Conn of a QP that is connected, where both ends have said Hello.
func (r *resources) begin(network string, ours, peer rsockets.Hello) *Conn {
	c := &Conn{
		resources: *r, network: network, local: r.qp.LocalAddr(), remote: r.qp.RemoteAddr(),
		reading: newGate(), writing: newGate(),
		ep: rsockets.NewEndpoint(ours, peer, r.ring.Len(), maxPiece), wc: make([]iwarp.WC, batch), again: make([]iwarp.RecvWR, 0, batch),
		maps: make([]*Mapping, peer.Maps),
	}
	c.rd.init()
	c.wr.init()
	c.out.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announce() // the rest of the ring; it also opens an MPA connection of the client-server model
	return c
}
