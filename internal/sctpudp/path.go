package sctpudp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/sctp"
	"github.com/goiwarp/iwarp/sctp/chunk"
)

// maxWaiting bounds the packets that wait to be read by one association, whose octets are bounded by its window: no
// peer that keeps to that has one dropped here.
const maxWaiting = 1024

// key tells the two ends of an association apart from all others on a socket: RFC 9260, section 1.
type key struct {
	addr netip.Addr
	port uint16 // the peer's, of SCTP
}

// A path carries the packets of one association. To pion it is the net.Conn.
type path struct {
	e              *Endpoint
	key            key
	ours, theirs   chunk.Setup
	peer           atomic.Pointer[netip.AddrPort] // of UDP
	in             chan []byte
	done           chan struct{}
	waiting        atomic.Int64  // octets in in
	interrupt      chan struct{} // closed by a read deadline
	heard          atomic.Int64  // when the peer's last packet came, in nanoseconds
	once, deadOnce sync.Once
	farewell       atomic.Pointer[error] // what the peer said last of the association
	reason         error                 // why it has ended; valid when done is closed
	routed         sync.Once
	local          net.Addr // set by routed
	arrived        *arrivals
}

func (e *Endpoint) newPath(k key, peer netip.AddrPort, ours, theirs chunk.Setup) *path {
	p := &path{
		e: e, key: k, ours: ours, theirs: theirs,
		in: make(chan []byte, maxWaiting), done: make(chan struct{}), interrupt: make(chan struct{}),
		arrived: newArrivals(theirs.TSN, e.cfg.Window),
	}
	p.peer.Store(&peer)
	p.heard.Store(time.Now().UnixNano())
	return p
}

// streams is how many there are in both directions.
func (p *path) streams() int {
	return int(min(p.ours.In, p.ours.Out, p.theirs.In, p.theirs.Out))
}

// deliver takes a packet with the right tag. Chunks that have no business here are left out of it.
func (p *path) deliver(from netip.AddrPort, b *packet, chunks []chunk.Chunk) {
	// RFC 6951, section 5.4: the UDP port is stored when the tag is right.
	if old := p.peer.Load(); old.Port() != from.Port() {
		p.peer.Store(&from)
	}
	p.heard.Store(time.Now().UnixNano())
	if !p.hasRoom(chunks) {
		return // before any of them counts as arrived
	}
	var kept []chunk.Chunk
	for _, c := range chunks {
		if c.Type == chunk.TypeData && c.Flags&chunk.FlagsWhole != chunk.FlagsWhole {
			d, _ := c.Data()
			p.violated(&sctp.Violation{Stream: d.Stream, Rule: sctp.RuleFragmented})
			return
		}
		if p.takes(&c) {
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		return
	}
	out := b.Packet(kept...)
	if p.waiting.Add(int64(len(out))) > int64(p.e.cfg.Window) {
		p.waiting.Add(-int64(len(out)))
		return
	}
	select {
	case p.in <- out:
	default:
		p.waiting.Add(-int64(len(out)))
	}
}

// hasRoom reports whether a packet of these chunks can wait to be read.
func (p *path) hasRoom(chunks []chunk.Chunk) bool {
	size := chunk.HeaderLen
	for _, c := range chunks {
		size += chunkOverhead + (len(c.Value)+3)&^3
	}
	return len(p.in) < cap(p.in) && p.waiting.Load()+int64(size) <= int64(p.e.cfg.Window)
}

// violated ends the association over what the peer has done, and tells it what that was. A fragment is such a thing: those
// who never send the rest would have us keep it.
//
// RFC 5043, section 9: "SCTP data chunk fragmentation MUST NOT be used unless the alternative is IP fragmentation.", which
// it is not on any path that carries packets of 544 octets.
func (p *path) violated(v *sctp.Violation) {
	p.bids(fmt.Errorf("%w: %w", carrier.ErrViolated, v))
	p.abort(chunk.CauseProtocolViolation, v.Error())
	_ = p.Close()
}

// abort tells the peer that the association is over, and why.
func (p *path) abort(cause uint16, text string) {
	why := chunk.Parameter{Type: cause, Value: []byte(text[:min(len(text), maxText)])}
	p.say(chunk.TypeAbort, why.Append(nil))
}

// takes judges a chunk. A DATA chunk on a stream that there is not, or without data, is none for which memory is
// taken: RFC 9260, sections 3.3.1 and 6.5.
func (p *path) takes(c *chunk.Chunk) bool {
	switch c.Type {
	case chunk.TypeData:
		d, ok := c.Data()
		return ok && d.Length > 0 && int(d.Stream) < p.streams() && p.arrived.admits(d.TSN, d.Length)
	case chunk.TypeAbort:
		p.bids(aborted(c))
		return true
	case chunk.TypeShutdown:
		p.bids(carrier.ErrShutdown)
		return true
	case chunk.TypeSack, chunk.TypeHeartbeat, chunk.TypeHeartbeatAck, chunk.TypeShutdownAck, chunk.TypeError, chunk.TypeShutdownComplete:
		return true
	}
	return false
}

func (p *path) bids(err error) { p.farewell.CompareAndSwap(nil, &err) }

// say sends the peer a packet with one chunk.
func (p *path) say(t chunk.Type, value []byte) {
	p.e.say(*p.peer.Load(), p.key.port, p.theirs.Tag, t, value)
}

// maxText is the longest text of an ABORT, in octets.
const maxText = 256

// heartbeat asks the peer whether it is there. pion's own HEARTBEAT (ActiveHeartbeat of v1.11.2) comes without its parameter:
// pion does not answer it, and Linux aborts the association. From what comes back, which is the time when this was
// sent, pion learns the round trip.
//
// RFC 9260, section 3.3.5, where the parameter is mandatory.
func (p *path) heartbeat() {
	info := chunk.Parameter{Type: chunk.ParamHeartbeatInfo, Value: binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))}
	p.say(chunk.TypeHeartbeat, info.Append(nil))
}

// aborted is what an ABORT says.
func aborted(c *chunk.Chunk) error {
	if text := c.Reason(); text != "" {
		return fmt.Errorf("%w: %q", carrier.ErrAborted, text)
	}
	return carrier.ErrAborted
}

// Read returns one packet.
func (p *path) Read(b []byte) (int, error) {
	select {
	case m := <-p.in:
		p.waiting.Add(-int64(len(m)))
		return copy(b, m), nil
	case <-p.interrupt:
		return 0, os.ErrDeadlineExceeded
	case <-p.done:
		return 0, net.ErrClosed
	}
}

// Write sends one packet, with our ports. What UDP has to say about it is of no use: SCTP sends again, and anybody
// could have sent an ICMP message: RFC 6951, section 5.5.
func (p *path) Write(b []byte) (int, error) {
	select {
	case <-p.done:
		return 0, net.ErrClosed
	default:
	}
	out := append([]byte(nil), b...)
	binary.BigEndian.PutUint16(out, p.e.port)
	binary.BigEndian.PutUint16(out[2:], p.key.port)
	p.arrived.closeWindow(out)
	p.e.send(*p.peer.Load(), chunk.Seal(out))
	if len(b) > chunk.HeaderLen && chunk.Type(b[chunk.HeaderLen]) == chunk.TypeAbort { // after which pion would go on reading
		p.bids(carrier.ErrViolated)
		_ = p.Close()
	}
	return len(b), nil
}

// Close takes the path out of the Endpoint. pion calls it at the end, for which the peer may have given a reason.
func (p *path) Close() error {
	if said := p.farewell.Load(); said != nil {
		return p.end(*said)
	}
	return p.end(net.ErrClosed)
}

func (p *path) end(reason error) error {
	p.once.Do(func() {
		p.reason = reason
		close(p.done)
		p.e.remove(p)
	})
	return nil
}

// LocalAddr is that of UDP. On a socket of all addresses it is the one that the system sends to the peer from.
func (p *path) LocalAddr() net.Addr {
	p.routed.Do(func() { p.local = p.e.addrTo(*p.peer.Load()) })
	return p.local
}

// addrTo returns the address of the socket as a peer knows it. If there is no route, it is the socket's own.
func (e *Endpoint) addrTo(peer netip.AddrPort) net.Addr {
	own := e.pc.LocalAddr().(*net.UDPAddr)
	if !own.IP.IsUnspecified() {
		return own
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(peer)) // it sends nothing
	if err != nil {
		return own
	}
	defer func() { _ = c.Close() }()
	local := *c.LocalAddr().(*net.UDPAddr)
	local.Port = own.Port
	return &local
}

// RemoteAddr is that of UDP.
func (p *path) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(*p.peer.Load()) }

// SetReadDeadline is used to interrupt Read for good.
func (p *path) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		p.deadOnce.Do(func() { close(p.interrupt) })
	}
	return nil
}

// SetWriteDeadline has nothing to do: Write does not wait.
func (p *path) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is SetReadDeadline.
func (p *path) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }
