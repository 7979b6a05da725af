package usertcp

import (
	"context"
	"errors"
	"io"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// sendsFIN has the peer end its half.
func (p *played) sendsFIN() {
	m := p.made(p.nxt, nil)
	m.flags |= header.TCPFlagFin
	p.in <- m.packet(p.echo)
	p.nxt++
}

// repeats counts the acknowledgements alone of the peer's FIN that have left.
func (p *played) repeats() (n int) {
	for len(p.out) > 0 {
		if s := p.next(); s.flags == header.TCPFlagAck && s.ack == p.nxt {
			if !s.intact() || s.seq != p.ack || len(s.payload) > 0 {
				p.t.Errorf("bad acknowledgement: %+v", s)
			}
			n++
		}
	}
	return n
}

// TestAssured: who was the first to close, or closed at once with the peer, has told it several times that its FIN has
// come when PeerAcked's channel is closed. Who was the second has nothing to repeat: the peer has acknowledged the FIN
// that told it.
func TestAssured(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *played, c *Conn)
		want int
	}{
		"first": {func(p *played, c *Conn) {
			must(t, c.CloseWrite())
			p.untilFIN(p.nxt)
			p.ack++
			p.sendsFIN()
		}, 1 + assurances},
		"at once": {func(p *played, c *Conn) {
			must(t, c.CloseWrite())
			p.untilFIN(p.nxt)
			p.sendsFIN()
			p.until(p.nxt)
			p.ack++
			p.in <- p.made(p.nxt, nil).packet(p.echo)
		}, assurances},
		"second": {func(p *played, c *Conn) {
			p.sendsFIN()
			p.until(p.nxt)
			must(t, c.CloseWrite())
			p.untilFIN(p.nxt)
			p.ack++
			p.in <- p.made(p.nxt, nil).packet(p.echo)
		}, 0},
	} {
		p, conn := playFIN(t)
		c.end(p, conn)
		_, err := io.Copy(io.Discard, conn)
		must(t, errors.Join(err, conn.Close()))
		<-conn.PeerAcked()
		must(t, conn.LossError())
		if n := p.repeats(); n != c.want {
			t.Errorf("%s: %d acknowledgements of the peer's FIN, want %d", name, n, c.want)
		}
	}
}

// TestAssuredAtShutdown: Shutdown of the Stack waits for that, too.
func TestAssuredAtShutdown(t *testing.T) {
	p, c := playFIN(t)
	must(t, c.CloseWrite())
	p.untilFIN(p.nxt)
	p.ack++
	p.sendsFIN()
	_, err := io.Copy(io.Discard, c)
	must(t, errors.Join(err, c.Close(), c.stack.Shutdown(context.Background())))
	if n := p.repeats(); n != 1+assurances {
		t.Errorf("%d acknowledgements of the peer's FIN", n)
	}
}

// TestNothingToAssure: in front of our FIN there is no acknowledgement to be repeated, and none can be made of a FIN
// that nobody has kept.
func TestNothingToAssure(t *testing.T) {
	if packet := new(flow).lastACK(); packet != nil {
		t.Errorf("%x", packet)
	}
	var early, lost lastPacket
	early.leaves(made{seq: 700, ack: 30, flags: header.TCPFlagAck})
	lost.seen.Store(true)
	for _, l := range []*lastPacket{&early, &lost} {
		if packet := l.acknowledging(31); packet != nil {
			t.Errorf("%x", packet)
		}
	}
}

// leaves has a packet of ours leave.
func (l *lastPacket) leaves(m made) {
	packet := m.packet(0)
	s, _ := parseSegment(packet)
	l.outbound(packet, &s)
}

// TestAssuredByFIN: where the last packet of ours was the FIN, sent again, an acknowledgement alone is made of it.
func TestAssuredByFIN(t *testing.T) {
	var l lastPacket
	l.leaves(made{seq: 700, ack: 30, flags: header.TCPFlagFin | header.TCPFlagAck, data: []byte("all")})
	s, ok := parseSegment(l.acknowledging(31))
	if !ok || s.seq != 704 || s.ack != 31 || s.flags != header.TCPFlagAck || len(s.payload) > 0 || !s.intact() {
		t.Errorf("%+v", s)
	}
}
