package usertcp

import (
	"context"
	"io"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// TestFlood holds that SYNs which nobody follows up take no more than a bounded number of flows, and that connections
// which are there go on showing what is ahead.
func TestFlood(t *testing.T) {
	p, c, seen := play(t)
	m := made{seq: 1, flags: header.TCPFlagSyn, options: []byte{2, 4, 5, 0xb4}}
	packet := m.packet(0)
	s, _ := parseSegment(packet)
	for i := range 3 * unclaimedFlows {
		e := ends{local: s.to, remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 1)}
		c.stack.taps.startFlow(e, &s)
	}
	c.stack.taps.mu.Lock()
	flows, waiting := len(c.stack.taps.flows), c.stack.taps.unclaimed.Len()
	c.stack.taps.mu.Unlock()
	if flows > unclaimedFlows+1 || waiting != flows-1 {
		t.Errorf("%d flows, %d of them of nobody's", flows, waiting)
	}
	done := make(chan bool)
	c.ShowAhead(func(at uint64, data []byte) {
		seen.add(at, data)
		close(done)
	})
	p.in <- p.ahead(100, 50).packet(p.echo)
	<-done
	if seen.evil != 50 {
		t.Errorf("%d bytes were shown", seen.evil)
	}
}

// TestClaimedFlows: a flow that was claimed, or forgotten, is kept by nothing but its connection, also where an older
// one waits on.
func TestClaimedFlows(t *testing.T) {
	syn, _ := parseSegment(made{seq: 1, flags: header.TCPFlagSyn, noTime: true}.packet(0))
	ts, e := newTaps(&PipeEnd{}, 1500), ends{local: syn.from, remote: syn.to}
	waits := ts.startFlow(e, &syn)
	for port := range uint16(10) {
		e := ends{local: syn.from, remote: netip.AddrPortFrom(syn.to.Addr(), 100+port)}
		f := ts.startFlow(e, &syn)
		if port%2 == 0 && ts.claim(e) != f {
			t.Error("another flow is claimed")
		}
		ts.forget(f)
	}
	if n := ts.unclaimed.Len(); n != 1 || len(ts.flows) != 1 {
		t.Errorf("%d flows wait, of %d", n, len(ts.flows))
	}
	if ts.claim(e) != waits || ts.unclaimed.Len() != 0 {
		t.Error("the oldest is not claimed, or waits on")
	}
}

// TestOldSYN has the SYN of an earlier connection come ahead of the right one: bytes are counted from what the stack
// acknowledges, and not from the peer's SYN, whose options say nothing either.
func TestOldSYN(t *testing.T) {
	p, c, seen := play(t)
	p.in <- made{seq: p.nxt + 5000, flags: header.TCPFlagSyn, options: []byte{2, 4, 2, 0, 3, 3, 0, 0}}.packet(0)
	p.in <- p.ahead(100, 50).packet(p.echo)
	m := p.ahead(200, 50) // refused, as timestamps were agreed on
	m.noTime = true
	p.in <- m.packet(p.echo)
	p.sends([]byte("m"))
	p.until(p.nxt)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if _, ok := seen.bytes[100]; !ok || len(seen.bytes) != 50 {
		t.Errorf("shown: %v", seen.bytes)
	}
	if got := c.EMSS(); got != 1420 {
		t.Errorf("EMSS %d", got)
	}
}

// TestBlank has a connection of which the tap knows nothing: it works, and shows nothing.
func TestBlank(t *testing.T) {
	a, b := stacks(t, Config{}, Path{}, Path{})
	l, err := b.Listen(context.Background(), "tcp", "192.0.2.2:1")
	must(t, err)
	out, err := a.DialContext(context.Background(), "tcp", l.Addr().String())
	must(t, err)
	b.taps.mu.Lock()
	clear(b.taps.flows)
	b.taps.mu.Unlock()
	in, err := l.Accept()
	must(t, err)
	if got := in.(*Conn).EMSS(); got != 536-40 {
		t.Errorf("EMSS %d", got)
	}
	for range 2 {
		_, err = out.Write([]byte("memory"))
		must(t, err)
		_, err = in.Read(make([]byte, 10))
		must(t, err)
	}
	if got := in.(*Conn).EMSS(); got != 1420 {
		t.Errorf("EMSS %d, once TCP has told it", got)
	}
	must(t, out.Close())
	if _, err := in.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v", err)
	}
	must(t, in.Close())
	<-in.(*Conn).PeerAcked()
	b.taps.mu.Lock()
	defer b.taps.mu.Unlock()
	if len(b.taps.flows) != 0 {
		t.Errorf("%d flows are left", len(b.taps.flows))
	}
}
