package usertcp

import (
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// playFIN is play, where it is the test that looks at the parting.
func playFIN(t *testing.T) (p *played, c *Conn) {
	p, c, _ = play(t)
	c.end.parting.begin.Do(func() {})
	return p, c
}

// looks until the FIN is sent again. TCP may have sent something since the last look.
func (p *played) looks(c *Conn) {
	p.t.Helper()
	for over := testrig.Within(p.t); !c.end.parting.look(c); {
		must(p.t, over.Err())
	}
}

// looksTwice reports whether the FIN is sent again where it is not to be.
func looksTwice(c *Conn) bool {
	first := c.end.parting.look(c)
	return c.end.parting.look(c) || first
}

// untilFIN waits for an acknowledgement, and for a FIN with it.
func (p *played) untilFIN(ack uint32) {
	p.t.Helper()
	for {
		s := p.next()
		if !s.intact() {
			p.t.Errorf("bad checksum of a segment of %d octets", len(s.tcp))
		}
		if s.has(header.TCPFlagFin) && s.ack == ack {
			if s.seq != p.ack || len(s.payload) > 0 {
				p.t.Errorf("the FIN has %d octets, and comes %d after what is acknowledged", len(s.payload), s.seq-p.ack)
			}
			return
		}
	}
}

// TestFINAgain: where nothing is sent any more, a FIN that is not acknowledged is sent again, with what is acknowledged by then.
func TestFINAgain(t *testing.T) {
	p, c := playFIN(t)
	must(t, c.CloseWrite())
	p.untilFIN(p.nxt)
	p.looks(c)
	p.untilFIN(p.nxt)
	p.sends([]byte("m"))
	p.until(p.nxt)
	p.looks(c)
	p.untilFIN(p.nxt)
	p.ack++
	p.in <- p.made(p.nxt, nil).packet(p.echo)
	<-c.Told()
	if looksTwice(c) {
		t.Error("a FIN that is acknowledged was sent again")
	}
}

// TestFINLater: no FIN is sent again before there is one, nor in front of what is not acknowledged.
func TestFINLater(t *testing.T) {
	p, c := playFIN(t)
	if looksTwice(c) {
		t.Error("a FIN was sent again that was not sent")
	}
	_, err := c.Write([]byte("octets"))
	must(t, err)
	must(t, c.CloseWrite())
	for s := p.next(); !s.has(header.TCPFlagFin); {
		s = p.next()
	}
	if looksTwice(c) {
		t.Error("a FIN was sent again in front of octets")
	}
	p.ack += 6
	p.in <- p.made(p.nxt, nil).packet(p.echo)
	p.looks(c)
	p.untilFIN(p.nxt)
}
