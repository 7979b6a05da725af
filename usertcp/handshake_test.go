package usertcp

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// playStack returns a stack whose link is a played peer's.
func playStack(t *testing.T) (*played, *Stack) {
	p := newPlayed(t)
	s, err := New(Config{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, Link: p})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return p, s
}

// toPort has a packet of a played peer's go to a port that its stack has chosen.
func toPort(packet []byte, port uint16) []byte {
	t := header.TCP(packet[header.IPv4MinimumSize:])
	t.SetDestinationPortWithChecksumUpdate(port)
	return packet
}

// TestResetOfSYN: in SYN-SENT a RST counts that acknowledges the SYN, and no other.
//
// Proves U04: RFC 5961, section 3.2.
func TestResetOfSYN(t *testing.T) {
	p, s := playStack(t)
	dialed := make(chan error, 1)
	go func() {
		_, err := s.DialContext(context.Background(), "tcp", "192.0.2.1:20000")
		dialed <- err
	}()
	syn := p.next()
	send := func(m made) { p.in <- toPort(m.packet(0), syn.from.Port()) }
	rst := made{ack: syn.seq, flags: header.TCPFlagRst | header.TCPFlagAck, noTime: true}
	send(rst)
	rst.ack += 2
	send(rst)
	send(made{seq: syn.seq + 1, flags: header.TCPFlagRst, noTime: true})
	if again := p.next(); again.flags != header.TCPFlagSyn || again.seq != syn.seq {
		t.Fatalf("the stack goes on with %+v, want its SYN", again)
	}
	rst.ack = syn.seq + 1
	send(rst)
	if err := <-dialed; !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want ECONNREFUSED", err)
	}
}

// TestResetOfSYNACK: in SYN-RECEIVED a RST or another SYN within the window is asked about, and the next RST ends
// what was being established.
//
// Proves U02, U03, U05: RFC 5961, sections 3.2 and 4.2.
func TestResetOfSYNACK(t *testing.T) {
	for name, m := range map[string]made{
		"RST": {seq: 0xffffff80 + 100, flags: header.TCPFlagRst, noTime: true},
		"SYN": {seq: 0xffffff80 + 100, flags: header.TCPFlagSyn, options: synOptions},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := playStack(t)
			l, err := s.Listen(context.Background(), "tcp", ":80")
			must(t, err)
			p.in <- made{seq: p.isn, flags: header.TCPFlagSyn, options: synOptions}.packet(0)
			answer := p.next()
			e := ends{local: answer.from, remote: answer.to}
			p.in <- m.packet(0)
			if s := p.next(); s.flags != header.TCPFlagAck || s.ack != p.isn+1 || s.seq != answer.seq+1 {
				t.Errorf("asked by %+v", s)
			}
			if got := s.state(e); got != tcp.StateSynRecv {
				t.Errorf("the state is %v", got)
			}
			p.nxt, p.ack, p.echo = p.isn+1, answer.seq+1, header.ParseSynOptions(answer.tcp.Options(), true).TSVal
			p.in <- p.made(p.nxt, nil).packet(p.echo)
			c, err := l.Accept()
			must(t, err)
			p.in <- made{seq: 5000, flags: header.TCPFlagSyn, options: synOptions}.packet(0) // of an established one
			p.asked()
			p.in <- p.rst(p.nxt)
			gone(t, c.(*Conn))
		})
	}
	p, s := playStack(t)
	_, err := s.Listen(context.Background(), "tcp", ":80")
	must(t, err)
	p.in <- made{seq: p.isn, flags: header.TCPFlagSyn, options: synOptions}.packet(0)
	answer := p.next()
	p.nxt = p.isn + 1
	p.in <- made{seq: p.nxt, flags: header.TCPFlagRst, noTime: true}.packet(0)
	p.in <- made{seq: p.nxt, ack: answer.seq + 1, flags: header.TCPFlagAck, noTime: true}.packet(0)
	for !p.reset {
		p.next()
	}
}

// TestSimultaneousOpen: SYNs that cross establish a connection, and the peer's that comes again changes nothing.
func TestSimultaneousOpen(t *testing.T) {
	p, s := playStack(t)
	dialed := make(chan *Conn, 1)
	go func() {
		c, err := s.DialContext(context.Background(), "tcp", "192.0.2.1:20000")
		if err != nil {
			t.Error(err)
			close(dialed)
			return
		}
		dialed <- c.(*Conn)
	}()
	syn := p.next()
	send := func(m made) { p.in <- toPort(m.packet(p.echo), syn.from.Port()) }
	first := made{seq: p.isn, flags: header.TCPFlagSyn, options: synOptions}
	send(first)
	answer := p.next()
	if answer.flags != header.TCPFlagSyn|header.TCPFlagAck || answer.seq != syn.seq {
		t.Fatalf("the SYN is answered by %+v", answer)
	}
	p.nxt, p.ack, p.echo = p.isn+1, syn.seq+1, header.ParseSynOptions(answer.tcp.Options(), true).TSVal
	first.flags, first.ack = header.TCPFlagSyn|header.TCPFlagAck, p.ack
	send(first)
	send(p.made(p.nxt, nil))
	c, ok := <-dialed
	if !ok {
		return
	}
	send(p.made(p.nxt, []byte("memory")))
	b := make([]byte, 10)
	if n, err := c.Read(b); string(b[:n]) != "memory" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
	rst := p.made(p.nxt+6, nil)
	rst.flags |= header.TCPFlagRst
	send(rst)
	gone(t, c)
}
