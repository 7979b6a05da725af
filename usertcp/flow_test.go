package usertcp

import (
	"bytes"
	"math"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// TestRoom: what the SYNs agree on has its room in each segment, and the window scale holds for all segments but SYNs.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		theirs header.TCPSynOptions
		emss   int32
		window uint32 // of a segment that says 60000
	}{
		{"nothing", header.TCPSynOptions{MSS: 1460, WS: -1}, 1460, 60000},
		{"a larger MSS", header.TCPSynOptions{MSS: 8960, WS: 0}, 1460, 60000},
		{"a smaller MSS", header.TCPSynOptions{MSS: 1000, WS: 1}, 1000, 120000},
		{"SACK", header.TCPSynOptions{MSS: 1460, SACKPermitted: true, WS: 7}, 1460 - 36, 60000 << 7},
		{"timestamps", header.TCPSynOptions{MSS: 1460, TS: true, WS: -1}, 1460 - 12, 60000},
		{"both", header.TCPSynOptions{MSS: 1460, TS: true, SACKPermitted: true, WS: 14}, 1460 - 40, 60000 << 14},
	} {
		syn, _ := parseSegment(made{seq: 1, flags: header.TCPFlagSyn, noTime: true}.packet(0))
		f := newFlow(ends{local: syn.from, remote: syn.to}, 1500, &syn)
		f.theirs = c.theirs
		f.agree(c.theirs)
		if got := f.emss.Load(); got != c.emss {
			t.Errorf("%s: EMSS %d, want %d", c.name, got, c.emss)
		}
		s, _ := parseSegment(made{seq: 2, flags: header.TCPFlagAck, noTime: true}.packet(0))
		if got := scaled(&s, f.agreed, c.theirs); got != c.window {
			t.Errorf("%s: window %d, want %d", c.name, got, c.window)
		}
		if got := scaled(&syn, f.agreed, c.theirs); got != 60000 {
			t.Errorf("%s: window of the SYN %d", c.name, got)
		}
	}
}

// TestScaleOfEach: each side's windows have its own scale, be the other's none. A FIN has a number.
func TestScaleOfEach(t *testing.T) {
	s, _ := parseSegment(made{seq: 2, flags: header.TCPFlagAck | header.TCPFlagFin, noTime: true,
		data: []byte("abc")}.packet(0))
	if got := scaled(&s, header.TCPSynOptions{WS: 0}, header.TCPSynOptions{WS: 7}); got != 60000<<7 {
		t.Errorf("window %d", got)
	}
	if got := s.endSeq(); got != 2+3+1 {
		t.Errorf("the number after it is %d", got)
	}
}

// TestAcknowledged: a segment ahead of others is shown that acknowledges what was sent meanwhile, and not one that
// acknowledges less than the peer's window ago.
func TestAcknowledged(t *testing.T) {
	p, c, seen := play(t)
	old := p.ack
	const enough = 60000<<7 + 1<<20
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, enough))
		written <- err
	}()
	for first := p.ack; p.ack-first < enough; {
		s := p.next()
		if end := s.endSeq(); before(p.ack, end) {
			p.ack = end
		}
		if len(p.out) == 0 || (p.ack-first)>>16 != (p.ack-first-uint32(len(s.payload)))>>16 {
			p.in <- p.made(p.nxt, nil).packet(p.echo)
		}
	}
	must(t, <-written)
	m := p.ahead(200, 50)
	m.ack = old
	p.in <- m.packet(p.echo)
	m = p.ahead(100, 50)
	m.data = bytes.Repeat([]byte("g"), 50)
	p.in <- m.packet(p.echo)
	p.insist([]byte("m"))
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.evil > 0 || len(seen.bytes) != 50 {
		t.Errorf("shown are %d bytes, %d of them with an old acknowledgement", len(seen.bytes), seen.evil)
	}
}

// TestNothingShownAfterClose: what comes ahead of others when a connection is closed is not shown.
func TestNothingShownAfterClose(t *testing.T) {
	p, c, seen := play(t)
	must(t, c.Close())
	p.in <- p.ahead(100, 50).packet(p.echo)
	p.sends([]byte("m"))
	p.until(p.nxt)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.evil > 0 {
		t.Errorf("%d bytes were shown", seen.evil)
	}
}

// TestBegin: a SYN of ours that is sent again is that of the same flow, and another begins a new one. Flows that are
// claimed do not wait for that.
func TestBegin(t *testing.T) {
	syn, _ := parseSegment(made{seq: 1, flags: header.TCPFlagSyn, noTime: true}.packet(0))
	other, _ := parseSegment(made{seq: 2, flags: header.TCPFlagSyn, noTime: true}.packet(0))
	ts, e := newTaps(&PipeEnd{}, 1500), ends{local: syn.from, remote: syn.to}
	f := ts.startFlow(e, &syn)
	if ts.startFlow(e, &syn) != f || ts.startFlow(e, &other) == f {
		t.Error("the flow of a SYN that is sent again, or of another")
	}
	for range 10 {
		f := ts.claim(e)
		ts.forget(f)
		ts.startFlow(e, &syn)
	}
	if n := ts.unclaimed.Len(); n != 1 {
		t.Errorf("%d flows wait for somebody to claim them", n)
	}
}

// TestNoSegment: what is no TCP segment, or has no whole header, is not looked at.
func TestNoSegment(t *testing.T) {
	six := make([]byte, header.IPv6MinimumSize+header.TCPMinimumSize)
	fields := header.IPv6Fields{PayloadLength: header.TCPMinimumSize,
		TransportProtocol: header.TCPProtocolNumber, HopLimit: 64}
	header.IPv6(six).Encode(&fields)
	header.TCP(six[header.IPv6MinimumSize:]).SetDataOffset(header.TCPMinimumSize)
	if _, ok := parseSegment(six); !ok {
		t.Error("a segment is none")
	}
	if _, ok := parseSegment(six[:len(six)-1]); ok {
		t.Error("a packet that is cut is one")
	}
	for _, offset := range []uint8{16, 24} {
		header.TCP(six[header.IPv6MinimumSize:]).SetDataOffset(offset)
		if _, ok := parseSegment(six); ok {
			t.Errorf("a header of %d bytes of 20", offset)
		}
	}
	fields.TransportProtocol = header.UDPProtocolNumber
	header.IPv6(six).Encode(&fields)
	header.TCP(six[header.IPv6MinimumSize:]).SetDataOffset(header.TCPMinimumSize)
	if _, ok := parseSegment(six); ok {
		t.Error("a packet of UDP is one")
	}
}

// TestGrants: the largest window stands in a segment as it is where one of the ends does not scale windows, and else by
// the peer's scale.
func TestGrants(t *testing.T) {
	for _, tt := range []struct {
		agreed, theirs int
		window         uint32
		want           uint16
	}{{-1, 3, 80, 80}, {-1, -1, 1 << 20, math.MaxUint16}, {0, 3, 80, 10}, {7, 3, 80, 10}, {7, 0, 80, 80},
		{7, 3, 1 << 20, math.MaxUint16}} {
		f := &flow{maxWindow: tt.window, agreed: header.TCPSynOptions{WS: tt.agreed},
			theirs: header.TCPSynOptions{WS: tt.theirs}}
		if got := f.grants(); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// TestFlowLearns: bytes that were sent count from after the SYN; acknowledgements after our FIN are selective where
// that was agreed on.
func TestFlowLearns(t *testing.T) {
	for _, selective := range []bool{false, true} {
		f := &flow{iss: 10, sndNxt: 11, agreed: header.TCPSynOptions{WS: -1, SACKPermitted: selective}}
		for _, m := range []made{
			{seq: 11, ack: 30, flags: header.TCPFlagAck, data: []byte("four")},
			{seq: 15, ack: 30, flags: header.TCPFlagAck | header.TCPFlagFin},
		} {
			packet, fin := m.packet(0), m.flags&header.TCPFlagFin != 0
			s, _ := parseSegment(packet)
			f.outbound(&s)
			if due := f.gaps.due.Load(); due != (fin && selective) {
				t.Errorf("selective %t, FIN %t: %t", selective, fin, due)
			}
			if n := f.sent(); !fin && n != 4 {
				t.Errorf("%d bytes were sent", n)
			}
		}
	}
}

// TestFlowWindow: the window ends where our latest packet says, also if that is before where another said; one that
// others have overtaken says nothing.
func TestFlowWindow(t *testing.T) {
	_, f := fuzzFlow()
	for _, p := range []struct {
		ack    uint32
		window uint16
		edge   uint32
	}{{1000, 500, 1500}, {1100, 500, 1600}, {1000, 600, 1600}, {1000, 400, 1600}, {1100, 400, 1500}} {
		packet := made{seq: 5000, ack: p.ack, flags: header.TCPFlagAck}.packet(70)
		s, _ := parseSegment(packet)
		s.tcp.SetWindowSize(p.window)
		f.outbound(&s)
		if f.rcvEdge != p.edge {
			t.Errorf("%d, window %d: it ends at %d, want %d", p.ack, p.window, f.rcvEdge, p.edge)
		}
	}
}

// TestFlowTimestamps: TS.Recent is what our packets echo where timestamps were agreed on, and only of packets that have
// one.
func TestFlowTimestamps(t *testing.T) {
	for _, p := range []struct {
		agreed, noTime bool
		want           uint32
	}{{true, false, 90}, {true, true, 70}, {false, false, 70}} {
		_, f := fuzzFlow()
		f.agreed.TS = p.agreed
		s, _ := parseSegment(made{seq: 5000, ack: 1000, flags: header.TCPFlagAck,
			noTime: p.noTime, time: 10}.packet(90))
		f.outbound(&s)
		if f.recent != p.want {
			t.Errorf("%+v: %d", p, f.recent)
		}
	}
}
