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

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// maxPackets bounds the packets that wait to be read by one association, whose bytes are bounded by its window, too.
const maxPackets = 1024

// A key is where an association's peer is. Two peers at one address may have the same port of SCTP, and not that of
// UDP.
type key struct {
	at   netip.AddrPort // of UDP
	port uint16         // of SCTP
}

// A path carries the packets of one association. To pion it is the net.Conn.
type path struct {
	e            *Endpoint
	port         uint16 // the peer's, of SCTP
	ours, theirs chunk.Setup
	ties         ties
	// from our INIT to the peer's INIT ACK, or from ours to its COOKIE ECHO
	answered time.Duration
	peer     atomic.Pointer[netip.AddrPort] // of UDP; the Endpoint's lock is held when it changes
	// bytes of messages that are not whole; the Endpoint's lock guards it and over
	held           int
	over           bool
	in             chan []byte
	done           chan struct{}
	waiting        atomic.Int64  // bytes in in
	interrupt      chan struct{} // closed by a read deadline
	wrote          chan struct{} // pion has sent something
	heard          atomic.Int64  // when the peer's last packet came, in nanoseconds
	once, deadOnce sync.Once
	cause          atomic.Pointer[error] // why the association ends: see noteCause
	reason         error                 // why it has ended; valid when done is closed
	routed         sync.Once
	local          net.Addr // set by routed
	arrived        *arrivals
	probes         *probes
	errors         budget // of ERRORs; the goroutine that receives uses it
}

func (e *Endpoint) newPath(peer netip.AddrPort, port uint16, ours, theirs chunk.Setup) *path {
	p := &path{
		e: e, port: port, ours: ours, theirs: theirs, ties: ties{random(), random()},
		in: make(chan []byte, maxPackets), done: make(chan struct{}), interrupt: make(chan struct{}),
		wrote:   make(chan struct{}, 1),
		arrived: newArrivals(theirs.TSN, e.cfg.Window), probes: newProbes(ours.TSN, theirs.Window),
	}
	p.peer.Store(&peer)
	p.heard.Store(time.Now().UnixNano())
	return p
}

func (p *path) key() key { return key{*p.peer.Load(), p.port} }

// isOf reports whether a packet may come from the peer: its UDP port may have changed.
func (p *path) isOf(from netip.AddrPort, port uint16) bool {
	return p.port == port && p.peer.Load().Addr() == from.Addr()
}

// follow notes that the peer has another UDP port now, as it has behind a NAT that has forgotten the old one. If there
// is an association with that port, it stays where it is: it may only not know a restart of its peer from now on.
//
// RFC 6951, section 5.4: "After finding the SCTP association (which includes checking the verification tag), the UDP
// source port MUST be stored".
func (p *path) follow(from netip.AddrPort) {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	if p.e.peers[p.key()] == p {
		delete(p.e.peers, p.key())
	}
	p.peer.Store(&from)
	if p.e.peers[p.key()] == nil && !p.over {
		p.e.peers[p.key()] = p
	}
}

// mtu is the largest packet of SCTP that is sent, in bytes.
func (p *path) mtu() int {
	if p.peer.Load().Addr().Is4() {
		return p.e.cfg.MTU - ipv4UDP
	}
	return min(p.e.cfg.MTU-ipv6UDP, maxPacket)
}

// streams is how many there are in both directions.
func (p *path) streams() int {
	return int(min(p.ours.In, p.ours.Out, p.theirs.In, p.theirs.Out))
}

// deliver takes a packet with the right tag. Chunks that have no business here are left out of it.
func (p *path) deliver(from netip.AddrPort, b *packet, chunks []chunk.Chunk) {
	if old := p.peer.Load(); old.Port() != from.Port() {
		p.follow(from)
	}
	p.heard.Store(time.Now().UnixNano())
	if !p.hasRoom(chunks) {
		return // before any of them counts as arrived
	}
	var kept []chunk.Chunk
	size := chunk.HeaderLen
	for _, c := range chunks {
		if !p.takes(&c) {
			continue
		}
		n := c.Size()
		switch {
		case n > maxPacket-chunk.HeaderLen:
			p.tooLarge(n)
			return
		case size+n > maxPacket:
			p.queue(b.Packet(kept...))
			kept, size = nil, chunk.HeaderLen
		}
		kept, size = append(kept, c), size+n
	}
	if len(kept) > 0 {
		p.queue(b.Packet(kept...))
	}
}

// hasRoom reports whether packets of these chunks can wait to be read.
func (p *path) hasRoom(chunks []chunk.Chunk) bool {
	size := chunk.HeaderLen
	for _, c := range chunks {
		size += c.Size() + (oddLen+3)&^3
	}
	return len(p.in)+2*size/maxPacket < cap(p.in) && p.waiting.Load()+int64(size) <= p.maxWaiting()
}

// maxWaiting bounds the bytes that wait to be read. Those of messages, which the window bounds, have headers.
func (p *path) maxWaiting() int64 { return 2 * int64(p.e.cfg.Window) }

// queue has pion read a packet, for which hasRoom has seen room.
func (p *path) queue(b []byte) {
	select {
	case p.in <- b:
		p.waiting.Add(int64(len(b)))
	default: // it is lost, as packets are
	}
}

// tooLarge ends the association over a chunk that pion cannot take, since it would come again and again.
func (p *path) tooLarge(n int) {
	err := fmt.Errorf("%w: a chunk of %d bytes in a packet, of %d at most",
		lowerlayer.ErrTooLarge, n, maxPacket-chunk.HeaderLen)
	p.noteCause(err)
	p.abort(chunk.CauseUserAbort, err.Error())
	_ = p.Close()
}

// violated ends the association over what the peer has done, and tells it what that was.
func (p *path) violated(v *sctp.Violation) {
	p.noteCause(fmt.Errorf("%w: %w", lowerlayer.ErrViolated, v))
	p.abort(chunk.CauseProtocolViolation, v.Error())
	_ = p.Close()
}

// abort tells the peer that the association is over, and why.
func (p *path) abort(cause uint16, text string) {
	why := chunk.Parameter{Type: cause, Value: lowerlayer.Reason(text)}
	p.say(chunk.TypeAbort, why.Append(nil))
}

// noData ends the association over a DATA chunk that has none.
//
// RFC 9260, section 6.2: who receives one "SHOULD send an ABORT chunk with a "No User Data" error cause".
func (p *path) noData(tsn uint32) {
	p.noteCause(fmt.Errorf("%w: a DATA chunk without user data", lowerlayer.ErrViolated))
	why := chunk.Parameter{Type: chunk.CauseNoUserData, Value: binary.BigEndian.AppendUint32(nil, tsn)}
	p.say(chunk.TypeAbort, why.Append(nil))
	_ = p.Close()
}

// invalidStream tells the peer that there is no such stream.
func (p *path) invalidStream(id uint16) {
	why := chunk.Parameter{Type: chunk.CauseInvalidStream, Value: []byte{byte(id >> 8), byte(id), 0, 0}}
	p.say(chunk.TypeError, why.Append(nil))
}

// takes judges a chunk, and puts DATA into the form that pion is to see.
func (p *path) takes(c *chunk.Chunk) bool {
	switch c.Type {
	case chunk.TypeData:
		return p.takesData(c)
	case chunk.TypeAbort:
		p.noteCause(lowerlayer.Aborted(c.Reason()))
		return true
	case chunk.TypeShutdown:
		p.noteCause(lowerlayer.ErrShutdown)
		return true
	case chunk.TypeSack:
		if probe := p.probes.acknowledged(c); probe != nil {
			p.e.send(*p.peer.Load(), chunk.Seal(probe))
		}
		return true
	case chunk.TypeHeartbeat, chunk.TypeHeartbeatAck, chunk.TypeShutdownAck, chunk.TypeError,
		chunk.TypeShutdownComplete:
		return true
	}
	return false
}

// noteCause notes why the association ends; the first reason is it.
func (p *path) noteCause(err error) { p.cause.CompareAndSwap(nil, &err) }

// takesData is takes for DATA. What comes on a stream that does not exist in both directions is handed up without its
// data.
//
// RFC 9260, section 6.5: if the stream is invalid, the endpoint "SHOULD acknowledge the reception of the DATA chunk
// following the normal procedure, immediately send an ERROR chunk with cause set to "Invalid Stream Identifier"", and
// discard it.
//
// A Terminate is acknowledged at once: the peer waits for that, and pion would let it wait for 200 ms.
//
// Section 6.2: if a chunk is dropped for lack of room, "the receiver MUST immediately send back a SACK chunk with the
// current receive window showing only DATA chunks received and accepted so far."
func (p *path) takesData(c *chunk.Chunk) bool {
	d, ok := c.Data()
	if !ok {
		return false
	}
	if d.Length == 0 {
		p.noData(d.TSN)
		return false
	}
	if int(d.Stream) < p.streams() {
		*c = enveloped(*c, &d)
	} else {
		*c = nowhere(*c, &d)
	}
	in, _ := c.Data()
	if m := (sctp.Message{PPID: d.PPID, Data: d.Bytes}); m.Function() == sctp.FunctionTerminate ||
		p.arrived.fills(d.TSN) {
		c.Flags |= flagImmediate
	}
	if !p.arrived.admits(d.TSN, len(in.Bytes)) {
		*c = p.arrived.known()
		return true
	}
	if d.Stream >= min(p.theirs.Out, p.ours.In) && p.errors.spend(time.Now()) {
		p.invalidStream(d.Stream)
	}
	return true
}

// say sends the peer a packet with one chunk.
func (p *path) say(t chunk.Type, value []byte) {
	p.e.say(*p.peer.Load(), p.port, p.theirs.Tag, t, value)
}

// heartbeat asks the peer whether it is there. pion's own HEARTBEAT (of v1.11.2) comes without its parameter:
// pion does not answer it, and Linux aborts the association. So this is sent in its place where pion sends one of
// itself, which is when its timer for probes runs out just as everything is acknowledged. From what comes back, which
// is the time when this was sent, pion learns the round trip.
//
// RFC 9260, section 3.3.5, where the parameter is mandatory.
func (p *path) heartbeat() {
	info := chunk.Parameter{Type: chunk.ParamHeartbeatInfo,
		Value: binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))}
	p.say(chunk.TypeHeartbeat, info.Append(nil))
}

// asksBlankly reports whether a packet is a HEARTBEAT without its parameter.
func asksBlankly(packet []byte) bool {
	return len(packet) == chunk.HeaderLen+4 && chunk.Type(packet[chunk.HeaderLen]) == chunk.TypeHeartbeat
}

// Read returns one packet.
func (p *path) Read(b []byte) (int, error) {
	select {
	case m := <-p.in:
		p.waiting.Add(-int64(len(m)))
		return copy(b, m), nil
	case <-p.arrived.reopen:
		h := chunk.Header{Source: p.port, Destination: p.e.port, Tag: p.ours.Tag}
		return copy(b, h.Packet(p.arrived.known())), nil
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
	if asksBlankly(b) {
		p.heartbeat()
		return len(b), nil
	}
	out := append([]byte(nil), b...)
	binary.BigEndian.PutUint16(out, p.e.port)
	binary.BigEndian.PutUint16(out[2:], p.port)
	left := p.arrived.announce(out)
	if p.probes.passes(out) {
		p.e.send(*p.peer.Load(), chunk.Seal(out))
	}
	select {
	case p.wrote <- struct{}{}:
	default:
	}
	if left != nil {
		close(left)
	}
	// after which pion would go on reading
	if len(b) > chunk.HeaderLen && chunk.Type(b[chunk.HeaderLen]) == chunk.TypeAbort {
		p.noteCause(lowerlayer.ErrViolated)
		_ = p.Close()
	}
	return len(b), nil
}

// Close takes the path out of the Endpoint. pion calls it at the end, for which the peer may have given a reason.
func (p *path) Close() error {
	if said := p.cause.Load(); said != nil {
		return p.closeWith(*said)
	}
	return p.closeWith(net.ErrClosed)
}

func (p *path) closeWith(reason error) error {
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
	from, err := lowerlayer.Route(peer)
	if err != nil {
		return own
	}
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, uint16(own.Port)))
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
