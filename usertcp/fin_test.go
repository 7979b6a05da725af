package usertcp

import (
	"bytes"
	"errors"
	"io"
	"slices"
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
	for over := testrig.Within(p.t); !c.end.parting.resendUnacked(c); {
		must(p.t, over.Err())
	}
}

// looksTwice reports whether the FIN is sent again where it is not to be.
func looksTwice(c *Conn) bool {
	first := c.end.parting.resendUnacked(c)
	return c.end.parting.resendUnacked(c) || first
}

// untilFIN waits for an acknowledgement, and for a FIN with it.
func (p *played) untilFIN(ack uint32) {
	p.t.Helper()
	for {
		s := p.next()
		if !s.intact() {
			p.t.Errorf("bad checksum of a segment of %d bytes", len(s.tcp))
		}
		if s.has(header.TCPFlagFin) && s.ack == ack {
			if s.seq != p.ack || len(s.payload) > 0 {
				p.t.Errorf("the FIN has %d bytes, and comes %d after what is acknowledged",
					len(s.payload), s.seq-p.ack)
			}
			return
		}
	}
}

// TestFINAgain: where nothing is sent any more, a FIN that is not acknowledged is sent again, with what is acknowledged
// by then.
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
	<-c.PeerAcked()
	if looksTwice(c) {
		t.Error("a FIN that is acknowledged was sent again")
	}
}

// TestFINLooked: from the end of our half on it is looked whether the FIN is acknowledged, and not before.
func TestFINLooked(t *testing.T) {
	for name, end := range map[string]func(*Conn) error{"CloseWrite": (*Conn).CloseWrite, "Close": (*Conn).Close} {
		_, c, _ := play(t) // the peer acknowledges nothing
		if c.end.parting.timer.Load() != nil {
			t.Errorf("%s: it was looked before", name)
		}
		must(t, end(c))
		if c.end.parting.timer.Load() == nil {
			t.Errorf("%s: it is not looked", name)
		}
	}
}

// TestFINLater: no FIN is sent again before there is one, nor in front of what is not acknowledged.
func TestFINLater(t *testing.T) {
	p, c := playFIN(t)
	if looksTwice(c) {
		t.Error("a FIN was sent again that was not sent")
	}
	_, err := c.Write([]byte("memory"))
	must(t, err)
	must(t, c.CloseWrite())
	for s := p.next(); !s.has(header.TCPFlagFin); {
		s = p.next()
	}
	if packet, _ := c.flow.last.fin(c.AckProgress()); packet != nil {
		t.Error("a FIN is to be sent again in front of bytes")
	}
	p.ack += 6
	p.in <- p.made(p.nxt, nil).packet(p.echo)
	p.looks(c)
	p.untilFIN(p.nxt)
}

// TestDataAgain: where nothing is sent any more, and bytes in front of the FIN are not acknowledged, TCP takes them
// for lost, over IPv4 and IPv6. Where its own timer was earlier, which a busy machine may have it, that is tried again.
func TestDataAgain(t *testing.T) {
	for _, address := range []string{"192.0.2.2:7174", "[2001:db8::2]:7174"} {
		tries := 0
		for !dataAgain(t, address) {
			if tries++; tries == 20 {
				t.Fatalf("%s: TCP has sent nothing again", address)
			}
		}
	}
}

// dataAgain reports whether TCP was in time to be told.
func dataAgain(t *testing.T, address string) bool {
	a, b, link := watchedStacks(t, Config{}, Path{}, Path{})
	c, s := connect(t, a, b, address)
	c.end.parting.begin.Do(func() {})
	link.deaf.Store(true)
	_, err := c.Write([]byte("memory"))
	must(t, errors.Join(err, c.CloseWrite()))
	stats := a.net.Stats().TCP
	for stats.SACKRecovery.Value() == 0 && stats.Timeouts.Value() == 0 {
		c.end.parting.resendUnacked(c)
	}
	link.deaf.Store(false)
	if _, err := io.ReadAll(s); err != nil {
		t.Error(err)
	}
	must(t, s.CloseWrite())
	return stats.Timeouts.Value() == 0
}

// TestReceived: what TCP is told stands in one intact segment of the peer's.
func TestReceived(t *testing.T) {
	for _, options := range [][]byte{nil, {1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9},
		{1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 1, 1, 0}} {
		var l lastPacket
		packet := made{seq: 200, ack: 7000, flags: header.TCPFlagFin | header.TCPFlagAck, noTime: true,
			options: options}.packet(0)
		s, _ := parseSegment(packet)
		if l.received(100, 5) != nil {
			t.Error("in front of the FIN")
		}
		l.outbound(packet, &s)
		was := l.received(100, 5)
		got, ok := parseSegment(was)
		if !ok {
			t.Fatalf("no segment: %x", was)
		}
		o := header.ParseTCPOptions(got.tcp.Options())
		want := []header.SACKBlock{{Start: 200, End: 201}}
		if !got.intact() || got.from != s.to || got.to != s.from || got.seq != 7000 || got.ack != 100 ||
			got.flags != header.TCPFlagAck || got.tcp.WindowSize() != 5 || !slices.Equal(o.SACKBlocks, want) {
			t.Errorf("%+v, %+v", got, o)
		}
		if o.TS != (options != nil) || o.TS && (o.TSVal != 9 || o.TSEcr != 7) {
			t.Errorf("timestamps: %+v", o)
		}
		if l.received(200, 5) != nil || l.received(201, 5) != nil {
			t.Error("with nothing in front of the FIN that is not acknowledged")
		}
		packet = made{seq: 201, ack: 0, flags: header.TCPFlagRst, noTime: true, options: options}.packet(0)
		s, _ = parseSegment(packet)
		if l.outbound(packet, &s); !bytes.Equal(l.received(100, 5), was) {
			t.Error("a RST, which acknowledges nothing, has changed it")
		}
	}
}
