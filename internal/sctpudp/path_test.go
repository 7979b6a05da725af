package sctpudp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A quiet path is one that nobody reads.
func quietPath(t *testing.T, c Config, at string) *path {
	t.Helper()
	e := endpoint(t, true, c)
	return e.newPath(netip.MustParseAddrPort(at), 9, e.setup(), e.setup())
}

// gets delivers a packet of chunks, some times, and returns how many packets wait then.
func (p *path) gets(n int, chunks ...chunk.Chunk) int {
	for range n {
		p.deliver(*p.peer.Load(), &packet{Header: chunk.Header{Source: 9, Destination: 10, Tag: 1}, chunks: chunks},
			chunks)
	}
	return len(p.in)
}

// TestWaiting: packets wait to be read up to twice the window, to the byte, and up to so many; and for each that is
// read there is room for another.
func TestWaiting(t *testing.T) {
	beat := func(n int) chunk.Chunk { return chunk.Chunk{Type: chunk.TypeHeartbeat, Value: make([]byte, n)} }
	buf := make([]byte, maxPacket)
	// Each is 1024 bytes, and has to have room for 12 more, as if it came in an envelope.
	for window, want := range map[int]int{64<<10 + 6: 128, 64<<10 + 5: 127} {
		p := quietPath(t, Config{Window: window}, "127.0.0.1:9")
		if got := p.gets(200, beat(1024-16)); got != want {
			t.Errorf("window %d: %d packets wait, want %d", window, got, want)
		}
		for range 3 {
			if n, err := p.Read(buf); n != 1024 || err != nil {
				t.Errorf("read %d bytes (%v)", n, err)
			}
			if got := p.gets(2, beat(1024-16)); got != want {
				t.Errorf("window %d: then %d packets wait, want %d", window, got, want)
			}
		}
	}
	p := quietPath(t, Config{}, "127.0.0.1:9")
	if got := p.gets(maxPackets+10, beat(0)); got != maxPackets {
		t.Errorf("%d packets wait", got)
	}
	small := chunk.Data{TSN: p.theirs.TSN, Stream: 1, PPID: 16, Bytes: []byte("small")}
	if p.gets(1, small.Chunk(plain)); p.arrived.next != p.theirs.TSN {
		t.Error("what there is no room for counts as arrived")
	}
	for range 4 {
		_, _ = p.Read(buf)
	}
	var large []chunk.Chunk
	for i := range uint32(6) {
		d := chunk.Data{TSN: p.theirs.TSN + i, Stream: 1, PPID: 16, Bytes: make([]byte, 8000)}
		large = append(large, d.Chunk(plain))
	}
	if got := p.gets(1, large...); got != maxPackets-4 || p.arrived.next != p.theirs.TSN {
		t.Errorf("%d packets wait, and %d chunks count as arrived that do not", got, p.arrived.next-p.theirs.TSN)
	}
	for range 10 {
		_, _ = p.Read(buf)
	}
	if got := p.gets(1, large...); got != maxPackets-14+6 || p.arrived.next != p.theirs.TSN+6 {
		t.Errorf("%d packets wait, and %d chunks count as arrived", got, p.arrived.next-p.theirs.TSN)
	}
}

// TestDivided: chunks that fit into a packet of pion's stay in one, to the byte, and of a packet of which nothing is
// taken nothing comes.
func TestDivided(t *testing.T) {
	beat := func(n int) chunk.Chunk { return chunk.Chunk{Type: chunk.TypeHeartbeat, Value: make([]byte, n-4)} }
	for last, want := range map[int]int{4088: 1, 4092: 2} {
		p := quietPath(t, Config{}, "127.0.0.1:9")
		if got := p.gets(1, beat(4092), beat(last)); got != want {
			t.Errorf("chunks of 4092 and %d bytes are in %d packets", last, got)
		}
	}
	p := quietPath(t, Config{}, "127.0.0.1:9")
	if got := p.gets(1, chunk.Chunk{Type: 130}, chunk.Chunk{Type: chunk.TypeCookieAck}); got != 0 {
		t.Errorf("%d packets wait", got)
	}
}

// TestGapFilled: what fills a gap, and nothing else, asks for a SACK at once.
func TestGapFilled(t *testing.T) {
	p := quietPath(t, Config{}, "127.0.0.1:9")
	for _, c := range []struct {
		tsn  uint32
		want bool
	}{{0, false}, {2, false}, {1, true}, {3, false}} {
		d := chunk.Data{TSN: p.theirs.TSN + c.tsn, Stream: 1, PPID: 16, Bytes: []byte("text")}
		p.gets(1, d.Chunk(plain))
		b := make([]byte, maxPacket)
		if _, err := p.Read(b); err != nil || (b[chunk.HeaderLen+1]&flagImmediate != 0) != c.want {
			t.Errorf("message %d has flags %x (%v)", c.tsn, b[chunk.HeaderLen+1], err)
		}
	}
}

// TestFollowed: the peer is where its last packet has come from.
func TestFollowed(t *testing.T) {
	p := quietPath(t, Config{}, "127.0.0.1:9")
	beat := []chunk.Chunk{{Type: chunk.TypeHeartbeat}}
	for _, at := range []string{"127.0.0.1:10", "127.0.0.1:10", "127.0.0.1:9"} {
		p.deliver(netip.MustParseAddrPort(at), &packet{chunks: beat}, beat)
		if got := p.RemoteAddr().String(); got != at {
			t.Errorf("the peer is at %s, and was heard from %s", got, at)
		}
	}
}

// TestMTUOverIPv6: the headers of IPv6 take more, and pion takes no larger packets because of IPv6.
func TestMTUOverIPv6(t *testing.T) {
	for mtu, want := range map[int]int{1500: 1452, MinMTU: MinMTU - 48, MaxMTU: MaxMTU - 48} {
		if got := quietPath(t, Config{MTU: mtu}, "[::1]:9").mtu(); got != want {
			t.Errorf("MTU %d: packets of %d bytes, want %d", mtu, got, want)
		}
	}
}

// TestLocalAddr: of a socket of all addresses it is the one by which the peer knows it, with the socket's port.
func TestLocalAddr(t *testing.T) {
	pc, err := net.ListenUDP("udp", nil)
	testrig.Must(t, err)
	e := New(pc, true, Config{})
	defer func() { _ = e.Close() }()
	port := pc.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	p := e.newPath(netip.MustParseAddrPort("127.0.0.1:9"), 9, e.setup(), e.setup())
	if got := p.LocalAddr().(*net.UDPAddr).AddrPort(); got.Addr().Unmap().String() != "127.0.0.1" ||
		got.Port() != port {
		t.Errorf("we are %v, at port %d", got, port)
	}
	if p := quietPath(t, Config{}, "127.0.0.1:9"); p.LocalAddr().String() != p.e.at().String() ||
		p.RemoteAddr().String() != "127.0.0.1:9" {
		t.Errorf("from %v to %v", p.LocalAddr(), p.RemoteAddr())
	}
}

// TestReadDeadline: only one that is over ends a Read, and those that follow.
func TestReadDeadline(t *testing.T) {
	p := quietPath(t, Config{}, "127.0.0.1:9")
	p.gets(1, chunk.Chunk{Type: chunk.TypeHeartbeat})
	testrig.Must(t, p.SetReadDeadline(time.Time{}))
	testrig.Must(t, p.SetDeadline(time.Now().Add(time.Hour)))
	select {
	case <-p.interrupt: // of which Read, with a packet there, may take no notice
		t.Error("a Read is interrupted")
	default:
	}
	if n, err := p.Read(make([]byte, 100)); n != 16 || err != nil {
		t.Errorf("read %d bytes (%v)", n, err)
	}
	for range 2 {
		testrig.Must(t, p.SetDeadline(time.Now()))
		if _, err := p.Read(nil); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}
}

// TestWrittenTo: what is written goes to the peer with the ports of SCTP, and not any more after the end, which an
// ABORT of pion's is: it has found that the peer breaks a rule.
func TestWrittenTo(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	p := e.newPath(s.pc.LocalAddr().(*net.UDPAddr).AddrPort(), s.port(), e.setup(), s.ours)
	for _, kind := range []chunk.Type{chunk.TypeShutdownComplete, chunk.TypeAbort} {
		b := chunk.Header{Source: 1, Destination: 2, Tag: s.ours.Tag}.Packet(chunk.Chunk{Type: kind})
		if n, err := p.Write(b); n != len(b) || err != nil {
			t.Errorf("wrote %d bytes (%v)", n, err)
		}
		if n, tag, c := s.answer(); n != len(b) || tag != s.ours.Tag || c.Type != kind {
			t.Errorf("%d bytes with tag %x, type %d", n, tag, c.Type)
		}
	}
	if !errors.Is(p.reason, lowerlayer.ErrViolated) {
		t.Errorf("ended over %v", p.reason)
	}
	if n, err := quietPath(t, Config{}, "127.0.0.1:9").Write(make([]byte, chunk.HeaderLen)); n != chunk.HeaderLen ||
		err != nil {
		t.Errorf("without a chunk: %d, %v", n, err)
	}
	if n, err := p.Write(make([]byte, 20)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %d, %v", n, err)
	}
	if n, err := p.Read(nil); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

// TestBlankHeartbeat: where pion asks without the parameter, the peer is asked with it.
//
// RFC 9260, section 3.3.5.
func TestBlankHeartbeat(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	p := e.newPath(s.pc.LocalAddr().(*net.UDPAddr).AddrPort(), s.port(), e.setup(), s.ours)
	b := chunk.Header{Source: 1, Destination: 2, Tag: s.ours.Tag}.Packet(chunk.Chunk{Type: chunk.TypeHeartbeat})
	if n, err := p.Write(b); n != len(b) || err != nil {
		t.Errorf("wrote %d bytes (%v)", n, err)
	}
	_, tag, c := s.answer()
	if tag != s.ours.Tag || c.Type != chunk.TypeHeartbeat || len(c.Value) != 12 ||
		binary.BigEndian.Uint16(c.Value) != chunk.ParamHeartbeatInfo {
		t.Errorf("tag %x, type %d: % x", tag, c.Type, c.Value)
	}
}

// TestFollow: a peer that moves to where another one is leaves that one known there, and one whose association is over
// is not known anywhere. An association that has heard nothing yet has not been silent.
func TestFollow(t *testing.T) {
	e := endpoint(t, true, Config{})
	here, there := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
	a, b := e.newPath(here, 9, e.setup(), e.setup()), e.newPath(there, 9, e.setup(), e.setup())
	if silent := time.Since(time.Unix(0, a.heard.Load())); silent > patience {
		t.Errorf("silent for %v", silent)
	}
	if !e.adopt(a, nil) || !e.adopt(b, nil) {
		t.Fatal("there is no room")
	}
	a.follow(there)
	if p := e.peers[b.key()]; p != b || a.key() != b.key() || len(e.peers) != 1 {
		t.Errorf("%d peers, and another one is known", len(e.peers))
	}
	_ = b.closeWith(net.ErrClosed)
	a.follow(here)
	_ = a.closeWith(net.ErrClosed)
	a.follow(there)
	if n, peers, _ := e.count(); n != 0 || peers != 0 {
		t.Errorf("%d associations with %d peers", n, peers)
	}
}
