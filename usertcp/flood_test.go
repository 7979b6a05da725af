package usertcp

import (
	"context"
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// A flooded stack takes SYNs of peers that do not exist.
type flooded struct {
	*played
	stack *Stack
	clock *faketime.ManualClock // of its TCP
}

func flood(t *testing.T, syns int) *flooded {
	p := newPlayed(t)
	f := &flooded{played: p, clock: faketime.NewManualClock()}
	var err error
	f.stack, err = New(Config{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, Link: p, clock: f.clock})
	must(t, err)
	t.Cleanup(func() { must(t, f.stack.Close()) })
	_, err = f.stack.Listen(context.Background(), "tcp", ":80")
	must(t, err)
	packet := made{seq: 1, flags: header.TCPFlagSyn, options: synOptions}.packet(0)
	for i := range syns {
		binary.BigEndian.PutUint32(packet[12:], 10<<24+uint32(i))
		lengthen(packet, len(packet)-header.IPv4MinimumSize)
		p.in <- packet
		<-p.out // answered: by a connection, or a cookie
	}
	return f
}

// flows returns how many there are, and how many the map has had room for.
func (f *flooded) flows() (now, most int) {
	t := f.stack.taps
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.flows), t.most
}

// passes takes a time, in which TCP's SYNs are sent again, and the taps look for flows of nobody's twice.
func (f *flooded) passes(d time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.clock.Advance(d)
	}()
	for {
		select {
		case <-f.out:
			continue
		case <-done:
		}
		break
	}
	f.stack.taps.sweep()
	f.stack.taps.sweep()
}

// heapNow returns the bytes of the heap that are in use.
func heapNow() int {
	runtime.GC()
	runtime.GC() // also of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestFloodFalls: what a flood of SYNs has had the taps keep is gone when TCP has given up on the last of them, and
// so is the room that their map had.
//
// Proves Z31: RFC 5042, section 2.2.7.
func TestFloodFalls(t *testing.T) {
	before := heapNow()
	f := flood(t, 3*unclaimedFlows)
	if now, _ := f.flows(); now < backlog-1 || now > unclaimedFlows {
		t.Errorf("%d flows in the flood", now)
	}
	full := heapNow() - before
	f.passes(time.Second)
	if now, _ := f.flows(); now != backlog-1 {
		t.Errorf("%d flows are left where TCP has %d connections", now, backlog-1)
	}
	f.passes(3 * time.Minute) // longer than TCP sends a SYN again
	now, most := f.flows()
	if now != 0 || most > cookieFlows {
		t.Errorf("%d flows are left, in a map that had %d", now, most)
	}
	if left := heapNow() - before; left > full/8 || left > 2<<20 {
		t.Errorf("%d bytes are left of %d", left, full)
	}
	runtime.KeepAlive(f)
}

// TestCookie: a connection that TCP has taken by a cookie in a flood is as safe as others, from its first segment on.
//
// Proves U02, U03, U06: RFC 5961, sections 3.2 and 5.2.
func TestCookie(t *testing.T) {
	f := flood(t, 2*backlog)
	p := f.played
	p.in <- made{seq: p.isn, flags: header.TCPFlagSyn, options: synOptions}.packet(0)
	syn := p.next()
	e := ends{local: syn.from, remote: syn.to}
	if got := f.stack.state(e); got != tcp.StateListen {
		t.Fatalf("no cookie: the state is %v", got)
	}
	p.nxt, p.ack, p.echo = p.isn+1, syn.seq+1, header.ParseSynOptions(syn.tcp.Options(), true).TSVal
	p.in <- p.made(p.nxt, nil).packet(p.echo)
	for f.stack.state(e) != tcp.StateEstablished {
		runtime.Gosched()
	}
	p.in <- p.rst(p.nxt + 1)
	p.asked()
	wrong := p.made(p.nxt, []byte("wrong"))
	wrong.ack += 1000
	p.in <- wrong.packet(p.echo)
	if s := p.asked(); s.ack != p.nxt {
		t.Errorf("bytes with a wrong ACK are taken")
	}
	p.sends([]byte("right"))
	p.until(p.nxt)
	p.in <- p.rst(p.nxt)
	p.sends([]byte("m"))
	for !p.reset {
		p.next()
	}
}

// TestOtherCookie: a peer may take the first of two answers to its SYN, of which the second is no cookie: its bytes
// are taken.
func TestOtherCookie(t *testing.T) {
	f := flood(t, 2*backlog)
	p := f.played
	p.in <- made{seq: p.isn, flags: header.TCPFlagSyn, options: synOptions}.packet(0)
	first := p.next()
	f.passes(3 * time.Minute)
	p.in <- made{seq: p.isn, flags: header.TCPFlagSyn, options: synOptions}.packet(0)
	second := p.next()
	if first.seq == second.seq || second.flags != header.TCPFlagSyn|header.TCPFlagAck {
		t.Fatal("the SYN has the same answer")
	}
	p.nxt, p.ack, p.echo = p.isn+1, first.seq+1, header.ParseSynOptions(second.tcp.Options(), true).TSVal
	p.in <- p.made(p.nxt, nil).packet(p.echo)
	for f.stack.state(ends{local: second.from, remote: second.to}) != tcp.StateEstablished {
		runtime.Gosched()
	}
	data := p.made(p.nxt, []byte("memory"))
	for p.nxt += 6; before(p.acked, p.nxt); {
		p.in <- data.packet(p.echo) // as a peer does that gets no acknowledgement
		p.next()
	}
}
