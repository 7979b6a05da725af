package usertcp

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// rst is a RST of the peer's.
func (p *played) rst(seq uint32) []byte {
	m := p.made(seq, nil)
	m.flags |= header.TCPFlagRst
	return m.packet(p.echo)
}

// gone reads until the connection ends, and holds that a RST has ended it.
func gone(t *testing.T, c *Conn) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ends with %v, want ECONNRESET", err)
	}
}

// asked waits for a challenge ACK.
func (p *played) asked() segment {
	p.t.Helper()
	s := p.next()
	if s.flags != header.TCPFlagAck || len(s.payload) > 0 || !s.intact() ||
		!header.ParseTCPOptions(s.tcp.Options()).TS {
		p.t.Fatalf("the stack sends %+v, want a challenge ACK", s)
	}
	return s
}

// TestBlindResets sends 66,000 RSTs, spread over all numbers, and 2000 within the window, as somebody does who knows
// the ends of a connection and does not see it. The connection lives, its bytes go on both ways, and its peer is
// asked ten times.
//
// Proves U01, U03, U07: RFC 5961, sections 3.2 and 7.
func TestBlindResets(t *testing.T) {
	p, c, _ := play(t)
	const many, near = 66_000, 2000
	asked := 0
	begun := time.Now()
	for i := range uint32(many + near) {
		seq := p.nxt + 1 + i*(1<<32/many)
		if i >= many {
			seq = p.nxt + 1 + (i - many) // by luck
		}
		p.in <- p.rst(seq)
		for len(p.out) > 0 {
			p.next()
			asked++
		}
	}
	want := bytes.Repeat([]byte("t"), 1000)
	p.sends(want)
	for before(p.acked, p.nxt) {
		if s := p.next(); before(s.ack, p.nxt) {
			asked++
		}
	}
	// Both ends of the window of five seconds may lie within the run.
	if most := challengeACKs * (1 + int(time.Since(begun)/challengePeriod)); asked < challengeACKs || asked > most {
		t.Errorf("the peer was asked %d times, want %d", asked, challengeACKs)
	}
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	must(t, err)
	_, err = c.Write(want)
	must(t, err)
	if s := p.next(); !bytes.Equal(got, want) || !bytes.Equal(s.payload, want) {
		t.Errorf("got %q, and the peer %q", got, s.payload)
	}
}

// TestResetBehindLoss: the RST of a peer whose bytes in front of it were lost is asked about, and the answer of who
// has no such connection any more ends it.
//
// Proves U02, U03: RFC 5961, section 3.2.
func TestResetBehindLoss(t *testing.T) {
	p, c, _ := play(t)
	p.in <- p.rst(p.nxt + 1000)
	s := p.asked()
	if s.ack != p.nxt || s.seq != p.ack {
		t.Errorf("asked with SEQ %d and ACK %d, want %d and %d", s.seq, s.ack, p.ack, p.nxt)
	}
	p.in <- p.rst(s.ack)
	gone(t, c)
}

// TestResetBehindHeld: as TestResetBehindLoss, where TCP holds bytes behind the gap.
func TestResetBehindHeld(t *testing.T) {
	p, c, _ := play(t)
	p.in <- p.made(p.nxt+100, []byte("held")).packet(p.echo)
	p.next() // says what is missing
	p.in <- p.rst(p.nxt + 104)
	p.in <- p.rst(p.asked().ack)
	gone(t, c)
}

// TestResetBehindBytes: a RST that comes right behind bytes and a FIN ends the connection, whether TCP has taken
// these yet or not, and whatever it has acknowledged. The peer answers all that still comes, as who has no such
// connection does.
//
// Proves U02: RFC 5961, section 3.2.
func TestResetBehindBytes(t *testing.T) {
	for range 30 {
		p, c, _ := play(t)
		for range 10 {
			p.sends(bytes.Repeat([]byte("o"), 1000))
		}
		end := p.made(p.nxt, []byte("end"))
		end.flags |= header.TCPFlagFin
		p.in <- end.packet(p.echo)
		p.in <- p.rst(p.nxt + 4)
		for ended := false; !ended; {
			select {
			case packet := <-p.out:
				if s, ok := p.note(packet); ok && !s.has(header.TCPFlagRst) {
					p.in <- p.rst(s.ack)
				}
			case <-c.PeerAcked():
				ended = true
			}
		}
		if err := c.LossError(); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("the connection ends with %v", err)
		}
	}
}

// TestResetBehindDamage: RCV.NXT is what TCP has taken. A RST behind bytes that TCP does not take, as their sum is
// wrong, is asked about. When they come again, one behind them ends the connection.
//
// Proves U03: RFC 5961, section 3.2.
func TestResetBehindDamage(t *testing.T) {
	p, c, _ := play(t)
	damaged := p.made(p.nxt, bytes.Repeat([]byte("d"), 100))
	damaged.spoil = true
	p.in <- damaged.packet(p.echo)
	p.in <- p.rst(p.nxt + 100)
	if s := p.asked(); s.ack != p.nxt {
		t.Errorf("asked with ACK %d, want %d", s.ack, p.nxt)
	}
	p.sends(damaged.data)
	p.until(p.nxt)
	p.in <- p.rst(p.nxt)
	gone(t, c)
}

// TestRestartedPeer: the SYN of a peer that has begun anew is asked about, as its old connection may still be right.
// Its answer ends the old one, and its next SYN is answered.
//
// Proves U05, U02: RFC 5961, section 4.2.
func TestRestartedPeer(t *testing.T) {
	p, c, _ := play(t)
	again := made{seq: p.nxt + 77_777, flags: header.TCPFlagSyn, options: synOptions}
	p.in <- again.packet(0)
	s := p.asked()
	p.in <- made{seq: s.ack, flags: header.TCPFlagRst, noTime: true}.packet(0)
	gone(t, c)
	p.in <- again.packet(0)
	if s := p.next(); s.flags != header.TCPFlagSyn|header.TCPFlagAck || s.ack != again.seq+1 {
		t.Errorf("the stack answers the SYN by %+v", s)
	}
}

// TestResetsOfHalves: also where one half has ended, a RST within the window is asked about, and the next one is right.
//
// Proves U02, U03: RFC 5961, section 3.2: "In all states except SYN-SENT".
func TestResetsOfHalves(t *testing.T) {
	for name, end := range map[string]func(p *played, c *Conn){
		"ours has ended": func(p *played, c *Conn) { must(p.t, c.CloseWrite()); p.next() },
		"ours is acknowledged": func(p *played, c *Conn) {
			must(p.t, c.CloseWrite())
			p.next()
			p.ack++
			p.in <- p.made(p.nxt, nil).packet(p.echo)
		},
		"the peer's has ended": func(p *played, c *Conn) {
			m := p.made(p.nxt, nil)
			m.flags |= header.TCPFlagFin
			p.in <- m.packet(p.echo)
			p.nxt++
			p.until(p.nxt)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, c, _ := play(t)
			end(p, c)
			p.in <- p.rst(p.nxt + 1)
			for s := p.next(); s.has(header.TCPFlagFin); { // which may be sent again
				s = p.next()
			}
			if err := c.LossError(); err != nil {
				t.Errorf("a RST within the window ends the connection: %v", err)
			}
			p.in <- p.rst(p.nxt)
			p.in <- p.made(p.nxt, nil).packet(p.echo)
			for !p.reset {
				p.next()
			}
		})
	}
}

// TestWindowBehind: what TCP has taken may lie behind the window that it has told last. There is no room then, however
// large the difference is as a number.
func TestWindowBehind(t *testing.T) {
	for _, c := range []struct{ edge, taken, want uint32 }{{10, 4, 6}, {4, 4, 0}, {4, 10, 0},
		{2, 1<<32 - 3, 5}, {1<<32 - 3, 2, 0}} {
		if got := (&flow{rcvEdge: c.edge}).window(c.taken); got != c.want {
			t.Errorf("%d after %d: %d, want %d", c.edge, c.taken, got, c.want)
		}
	}
}
