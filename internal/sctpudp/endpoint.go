package sctpudp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// Config configures an Endpoint. The zero value is usable.
type Config struct {
	// Streams is how many streams to ask for in both directions. If zero, 64.
	Streams int
	// MTU is that of the path: the largest IP packet that is sent, in bytes, from [MinMTU] to [MaxMTU]. If zero, 1500.
	// It is not discovered (RFC 6951, section 5.6).
	MTU int
	// Window is how many bytes an association takes that were not read yet. If zero, 256 KiB.
	Window int
	// MaxAssociations bounds those of the Endpoint. If zero, 1024.
	MaxAssociations int
	// Heartbeat is how long a peer may say nothing before it is asked whether it is there. If zero, 5 s.
	Heartbeat time.Duration
	// Silence is after how long without a word the association is lost. If zero, four times Heartbeat.
	Silence time.Duration
	// HandshakeTimeout bounds a handshake of ours. If zero, 10 s.
	HandshakeTimeout time.Duration
}

// Bytes.
const (
	// MinMTU leaves room for the largest session control message (RFC 5043, section 9), over IPv6.
	MinMTU = ipv6UDP + chunk.HeaderLen + chunk.DataLen + sctp.MinMaxMessage
	// MaxMTU is what pion takes, over IPv4.
	MaxMTU = ipv4UDP + maxPacket

	ipv4UDP, ipv6UDP = 28, 48 // headers before those of SCTP
	maxPacket        = 8192   // of SCTP: pion's receive buffer
)

func (c *Config) fill() {
	c.Streams = min(max(cmp.Or(c.Streams, 64), 1), 1<<16-1)
	c.MTU = min(max(cmp.Or(c.MTU, 1500), MinMTU), MaxMTU)
	c.Window = max(cmp.Or(c.Window, 256<<10), 64<<10)
	c.MaxAssociations = cmp.Or(c.MaxAssociations, 1024)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Silence = cmp.Or(c.Silence, 4*c.Heartbeat)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 10*time.Second)
}

// A Socket is one of UDP, as *net.UDPConn has them. Its LocalAddr is a *net.UDPAddr.
type Socket interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// An Endpoint is a UDP socket with SCTP associations on it. Its SCTP port is that of UDP.
type Endpoint struct {
	cfg       Config
	pc        Socket
	port      uint16
	listening bool
	minter    minter
	accepted  chan *Conn
	done      chan struct{}
	resting   chan struct{} // closed by Retire
	answers   budget        // to what belongs to no association
	spent     ledger
	began     time.Time

	mu         sync.Mutex
	closed     bool
	retired    bool
	tags       map[uint32]*path
	peers      map[key]*path
	handshakes map[uint32]*handshake // under way from here, by our tag
	held       int                   // bytes of messages that are not whole
}

// maxBacklog bounds the associations that nobody has accepted yet.
const maxBacklog = 64

// New serves associations on a socket, which it owns from then on. With listening it answers INITs.
func New(pc Socket, listening bool, c Config) *Endpoint {
	local := pc.LocalAddr().(*net.UDPAddr).AddrPort()
	c.fill()
	e := &Endpoint{
		cfg: c, pc: pc, began: time.Now(), port: local.Port(), listening: listening, minter: newMinter(),
		accepted: make(chan *Conn, maxBacklog), done: make(chan struct{}), resting: make(chan struct{}),
		tags: make(map[uint32]*path), peers: make(map[key]*path), handshakes: make(map[uint32]*handshake),
	}
	if c, ok := pc.(*net.UDPConn); ok {
		Enlarge(c)
	}
	go e.receive()
	return e
}

// Enlarge gives a socket the buffers that associations want. New does it, where it is given the socket itself.
func Enlarge(pc *net.UDPConn) {
	_ = pc.SetReadBuffer(4 << 20)
	_ = pc.SetWriteBuffer(1 << 20)
}

// Addr returns the address of the socket.
func (e *Endpoint) Addr() net.Addr { return e.pc.LocalAddr() }

// Accept returns the next association that a peer has opened.
func (e *Endpoint) Accept(ctx context.Context) (*Conn, error) {
	select {
	case c := <-e.accepted:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.resting:
		return nil, net.ErrClosed
	case <-e.done:
		return nil, net.ErrClosed
	}
}

// Retire has the Endpoint take no more associations, and close itself with the last that it has.
func (e *Endpoint) Retire() {
	e.mu.Lock()
	first := !e.retired
	e.retired = true
	last := len(e.tags) == 0
	e.mu.Unlock()
	if first {
		close(e.resting)
		e.abortUnaccepted()
	}
	if last {
		_ = e.Close()
	}
}

// abortUnaccepted ends the associations that nobody has accepted, and nobody will.
func (e *Endpoint) abortUnaccepted() {
	for {
		select {
		case c := <-e.accepted:
			c.Abort("not listening any more")
			c.drop()
		default:
			return
		}
	}
}

// isRetired reports whether no more associations are taken.
func (e *Endpoint) isRetired() bool {
	select {
	case <-e.resting:
		return true
	default:
		return !e.listening
	}
}

// Close closes the socket, and with it whatever is still open.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	var all []*path
	for _, p := range e.tags {
		all = append(all, p)
	}
	e.mu.Unlock()
	if !first {
		return net.ErrClosed
	}
	close(e.done)
	for _, p := range all {
		_ = p.closeWith(net.ErrClosed)
	}
	err := e.pc.Close()
	for {
		select {
		case c := <-e.accepted:
			c.drop()
		default:
			return err
		}
	}
}

// say sends a packet with one chunk to a port of SCTP.
func (e *Endpoint) say(to netip.AddrPort, port uint16, tag uint32, t chunk.Type, value []byte) {
	h := chunk.Header{Source: e.port, Destination: port, Tag: tag}
	e.send(to, h.Packet(chunk.Chunk{Type: t, Value: value}))
}

func (e *Endpoint) send(to netip.AddrPort, b []byte) { _, _ = e.pc.WriteToUDPAddrPort(b, to) }

// receive reads the socket until it is closed.
func (e *Endpoint) receive() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := e.pc.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
			e.dispatch(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), buf[:n])
		case errors.Is(err, net.ErrClosed):
			return
		}
	}
}

// dispatch gives a packet to the association that it belongs to.
func (e *Endpoint) dispatch(from netip.AddrPort, b []byte) {
	p, ok := parse(b)
	if !ok || p.Destination != e.port {
		return
	}
	switch p.chunks[0].Type {
	case chunk.TypeInit:
		e.onInit(from, &p)
	case chunk.TypeCookieEcho:
		e.onCookieEcho(from, &p)
	default:
		e.onOther(from, &p)
	}
}

// onOther gives a packet to whoever has its tag.
//
// RFC 9260, section 8.5: "The receiver of an SCTP packet MUST ensure that the value in the Verification Tag field of
// the received SCTP packet matches its own tag." Section 8.5.1: with the T bit set, it is the sender's.
func (e *Endpoint) onOther(from netip.AddrPort, p *packet) {
	peer := key{from, p.Source}
	e.mu.Lock()
	hand, known := e.handshakes[p.Tag], e.tags[p.Tag]
	unknown := hand == nil && known == nil && e.peers[peer] == nil
	if c := p.chunks[0]; (c.Type == chunk.TypeAbort || c.Type == chunk.TypeShutdownComplete) &&
		c.Flags&chunk.FlagT != 0 {
		hand, known = nil, e.peers[peer]
		if known != nil && known.theirs.Tag != p.Tag {
			known = nil
		}
	}
	e.mu.Unlock()
	switch {
	case hand != nil && p.has(chunk.TypeShutdownAck) != nil: // section 8.5.1, E
		e.stray(from, p)
	case hand != nil:
		hand.hear(from, p)
	case known != nil && known.isOf(from, p.Source):
		known.deliver(from, p, p.chunks)
	case unknown:
		e.stray(from, p)
	}
}

// adopt makes a path known, in the place of the handshake that has led to it, if it was one of ours. One to the same
// peer, which has begun anew, is replaced. It reports false if there is no room, or the handshake was given up.
func (e *Endpoint) adopt(p *path, h *handshake) bool {
	e.mu.Lock()
	old := e.peers[p.key()]
	full := e.closed || e.tags[p.ours.Tag] != nil || e.handshakes[p.ours.Tag] != h || old == nil &&
		len(e.tags) >= e.cfg.MaxAssociations
	if !full {
		e.tags[p.ours.Tag], e.peers[p.key()] = p, p
		delete(e.handshakes, p.ours.Tag)
	}
	e.mu.Unlock()
	if old != nil && !full {
		_ = old.closeWith(lowerlayer.ErrRestarted)
	}
	return !full
}

func (e *Endpoint) remove(p *path) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tags[p.ours.Tag] == p {
		delete(e.tags, p.ours.Tag)
	}
	if e.peers[p.key()] == p {
		delete(e.peers, p.key())
	}
	p.over = true
	e.held -= p.held
	if e.retired && !e.closed && len(e.tags) == 0 {
		go func() { _ = e.Close() }()
	}
}
