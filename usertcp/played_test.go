package usertcp

import (
	"bytes"
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A played peer is a TCP by hand, at the link of a stack: it sends the segments that a test makes, and looks at those
// that the stack sends.
type played struct {
	t        *testing.T
	in, out  chan []byte
	closing  sync.Once
	closed   chan struct{}
	isn      uint32
	nxt, ack uint32 // of what the peer sends next
	time     uint32 // of its timestamps
	echo     uint32
	shift    int    // of the stack's windows
	edge     uint32 // of the stack's window, as it has said last
	acked    uint32 // what the stack has acknowledged
	reset    bool   // the stack has sent a RST
	sacks    []header.SACKBlock
}

func newPlayed(t *testing.T) *played {
	return &played{
		t: t, in: make(chan []byte, 100), out: make(chan []byte, 1000), closed: make(chan struct{}),
		isn: 0xffffff80, time: 5_000_000,
	}
}

var stackAddr, peerAddr = tcpip.AddrFrom4([4]byte{192, 0, 2, 2}), tcpip.AddrFrom4([4]byte{192, 0, 2, 1})

const peerPort, stackPort = 20000, 80

// MTU is Link's.
func (p *played) MTU() int { return 1500 }

// Send is Link's.
func (p *played) Send(packet []byte) {
	select {
	case p.out <- bytes.Clone(packet):
	case <-p.closed:
	}
}

// Receive is Link's.
func (p *played) Receive(deliver func([]byte)) error {
	for {
		select {
		case packet := <-p.in:
			deliver(packet)
		case <-p.closed:
			return nil
		}
	}
}

// Close is Link's.
func (p *played) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return nil
}

// A made segment is one that a test asks for.
type made struct {
	seq, ack   uint32
	flags      header.TCPFlags
	time       uint32
	noTime     bool
	options    []byte // in place of a timestamp
	data       []byte
	spoil      bool // the TCP checksum
	spoilIP    bool
	withOption bool // an IP option
	more       bool // an IP fragment is to follow
	offset     uint16
}

// packet makes a packet of it.
func (m made) packet(echo uint32) []byte {
	options := m.options
	if options == nil && !m.noTime {
		options = make([]byte, 12)
		options[0], options[1] = header.TCPOptionNOP, header.TCPOptionNOP
		header.EncodeTSOption(m.time, echo, options[2:])
	}
	ihl := header.IPv4MinimumSize
	if m.withOption {
		ihl += 4 // of zeros: the end of options
	}
	b := make([]byte, ihl+header.TCPMinimumSize+len(options)+len(m.data))
	ip := header.IPv4(b)
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(header.TCPProtocolNumber),
		SrcAddr: peerAddr, DstAddr: stackAddr})
	ip.SetHeaderLength(uint8(ihl))
	if m.more {
		ip.SetFlagsFragmentOffset(header.IPv4FlagMoreFragments, m.offset)
	} else {
		ip.SetFlagsFragmentOffset(0, m.offset)
	}
	setIPSum(ip)
	if m.spoilIP {
		b[8]++
	}
	tcp := header.TCP(b[ihl:])
	tcp.Encode(&header.TCPFields{SrcPort: peerPort, DstPort: stackPort, SeqNum: m.seq, AckNum: m.ack,
		DataOffset: uint8(header.TCPMinimumSize + len(options)), Flags: m.flags, WindowSize: 60000})
	copy(tcp[header.TCPMinimumSize:], options)
	copy(tcp[header.TCPMinimumSize+len(options):], m.data)
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, peerAddr, stackAddr, uint16(len(tcp)))
	tcp.SetChecksum(^checksum.Checksum(tcp, sum))
	if m.spoil {
		tcp.SetChecksum(tcp.Checksum() ^ 0x1234)
	}
	return b
}

func setIPSum(ip header.IPv4) {
	ip.SetChecksum(0)
	ip.SetChecksum(^ip.CalculateChecksum())
}

// fragments cuts a packet in two.
func fragments(packet []byte) (first, second []byte) {
	const at = 64
	first = bytes.Clone(packet[:header.IPv4MinimumSize+at])
	second = append(bytes.Clone(packet[:header.IPv4MinimumSize]), packet[header.IPv4MinimumSize+at:]...)
	for i, b := range [][]byte{first, second} {
		ip := header.IPv4(b)
		ip.SetTotalLength(uint16(len(b)))
		ip.SetID(7)
		ip.SetFlagsFragmentOffset([]uint8{header.IPv4FlagMoreFragments, 0}[i], uint16(i)*at)
		setIPSum(ip)
	}
	return first, second
}

// play returns a stack, a connection of it to a played peer that has sent 200 bytes, of which the sequence numbers
// wrap, and what is shown of what follows.
func play(t *testing.T) (p *played, c *Conn, seen *shown) { return playSYN(t, synOptions) }

// synOptions are an MSS, SACK permitted, a timestamp and a window scale.
var synOptions = []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0x4c, 0x4b, 0x40, 0, 0, 0, 0, 1, 3, 3, 7}

// playSYN is play, for a peer whose SYN has other options. A timestamp is one of them.
func playSYN(t *testing.T, options []byte) (p *played, c *Conn, seen *shown) {
	p = newPlayed(t)
	s, err := New(Config{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, Link: p})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	l, err := s.Listen(context.Background(), "tcp", ":80")
	must(t, err)
	p.connect(options)
	accepted, err := l.Accept()
	must(t, err)
	c = accepted.(*Conn)
	p.sends(bytes.Repeat([]byte("a"), 200))
	p.until(p.nxt)
	_, err = c.Read(make([]byte, 200))
	must(t, err)
	seen = &shown{bytes: map[uint64]byte{}}
	c.ShowAhead(seen.add)
	return p, c, seen
}

// connect shakes hands. The SYN has data, which the stack does not take.
func (p *played) connect(options []byte) {
	p.in <- made{seq: p.isn, flags: header.TCPFlagSyn, options: options, data: bytes.Repeat([]byte("S"), 64)}.packet(0)
	syn := p.next()
	o := header.ParseSynOptions(syn.tcp.Options(), true)
	if permits := bytes.Contains(options, []byte{4, 2, 8}); syn.ack != p.isn+1 || !o.TS ||
		o.SACKPermitted != permits || o.WS < 0 {
		p.t.Fatalf("SYN-ACK: ack %d, %+v", syn.ack-p.isn, o)
	}
	p.nxt, p.ack, p.echo, p.shift = p.isn+1, syn.seq+1, o.TSVal, o.WS
	p.in <- p.made(p.nxt, nil).packet(p.echo)
}

// made returns a correct segment at a sequence number.
func (p *played) made(seq uint32, data []byte) made {
	return made{seq: seq, ack: p.ack, flags: header.TCPFlagAck, time: p.time, data: data}
}

// sends sends bytes in order.
func (p *played) sends(b []byte) {
	p.in <- p.made(p.nxt, b).packet(p.echo)
	p.nxt += uint32(len(b))
}

// insist sends bytes in order until they are acknowledged. The stack drops segments with bytes while more of others
// waits for it than its buffer holds, be they empty, and a peer sends again.
func (p *played) insist(b []byte) {
	p.t.Helper()
	packet := p.made(p.nxt, b).packet(p.echo)
	p.nxt += uint32(len(b))
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	ctx := testrig.Within(p.t)
	for p.in <- packet; p.acked != p.nxt; {
		select {
		case packet := <-p.out:
			p.note(packet)
		case <-again.C:
			p.in <- packet
		case <-ctx.Done():
			p.t.Fatal("the stack does not acknowledge")
		}
	}
}

// note takes in what a segment of the stack's says, if it is one.
func (p *played) note(packet []byte) (s segment, ok bool) {
	if s, ok = parseSegment(packet); !ok {
		return s, false
	}
	if !s.has(header.TCPFlagSyn) {
		p.acked, p.edge = s.ack, s.ack+uint32(s.tcp.WindowSize())<<p.shift
	}
	p.reset = p.reset || s.has(header.TCPFlagRst)
	p.sacks = append(p.sacks, header.ParseTCPOptions(s.tcp.Options()).SACKBlocks...)
	return s, true
}

// next waits for a segment of the stack's, and notes what it says.
func (p *played) next() segment {
	p.t.Helper()
	for {
		select {
		case packet := <-p.out:
			if s, ok := p.note(packet); ok {
				return s
			}
		case <-testrig.Within(p.t).Done():
			p.t.Fatal("the stack sends nothing")
		}
	}
}

// until waits for the stack to acknowledge a sequence number, or to say that the connection is gone.
func (p *played) until(seq uint32) {
	p.t.Helper()
	for before(p.acked, seq) && !p.reset {
		p.next()
	}
}

// took reports whether the stack has said that it has bytes out of order.
func (p *played) took(from, to uint32) bool {
	for _, b := range p.sacks {
		if !before(from, uint32(b.Start)) && !before(uint32(b.End), to) {
			return true
		}
	}
	return false
}

// shown is what was shown, by its place.
type shown struct {
	mu     sync.Mutex
	bytes  map[uint64]byte
	evil   int // bytes of the segment in question
	differ int // bytes shown twice, with others in their place
}

const evil = 'E'

func (s *shown) add(at uint64, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range data {
		was, ok := s.bytes[at+uint64(i)]
		switch {
		case ok && was != b:
			s.differ++
		case !ok:
			s.bytes[at+uint64(i)] = b
		}
		if b == evil {
			s.evil++
		}
	}
}
