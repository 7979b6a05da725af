package usertcp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// blocks are those from one sequence number to another, which count from the next of the peer's.
func (p *played) blocks(ends ...uint32) (all []header.SACKBlock) {
	for i := 0; i < len(ends); i += 2 {
		all = append(all, header.SACKBlock{Start: seqnum.Value(p.nxt + ends[i]), End: seqnum.Value(p.nxt + ends[i+1])})
	}
	return all
}

// answers takes the acknowledgements of segments that were sent one at a time: one for each, with these blocks.
func (p *played) answers(ack uint32, want []header.SACKBlock) {
	p.t.Helper()
	s := p.next()
	if !s.intact() {
		p.t.Errorf("bad checksum of a segment of %d bytes", len(s.tcp))
	}
	if got := header.ParseTCPOptions(s.tcp.Options()).SACKBlocks; s.ack != ack || !slices.Equal(got, want) {
		p.t.Errorf("it acknowledges %d and %v, want %d and %v", s.ack-p.nxt, got, ack-p.nxt, want)
	}
}

// TestGapsAfterFIN: after its FIN a stack goes on to say what it holds ahead of order, and so it does in front of it.
//
// RFC 2018, section 4: "The first SACK block (i.e., the one immediately following the kind and length fields in the
// option) MUST specify the contiguous block of data containing the segment which triggered this ACK, unless that
// segment advanced the Acknowledgment Number field in the header."
func TestGapsAfterFIN(t *testing.T) {
	for name, half := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c, _ := play(t)
			if half {
				c.flow.gaps.delay = time.Hour // the stack takes as long as it takes to process a segment
				p.fin(c)
			}
			p.in <- good(100, 50, 0)(p).packet(p.echo)
			p.answers(p.nxt, p.blocks(100, 150))
			p.in <- good(300, 50, 0)(p).packet(p.echo)
			p.answers(p.nxt, p.blocks(300, 350, 100, 150))
			p.in <- good(150, 50, 0)(p).packet(p.echo)
			p.answers(p.nxt, p.blocks(100, 200, 300, 350))
			held := p.blocks(100, 200, 300, 350)
			for by := uint32(400); by < 800; by += 100 {
				p.in <- good(by, 50, 0)(p).packet(p.echo)
				held = append(p.blocks(by, by+50), held...)
				p.answers(p.nxt, held[:3]) // of which there is room for three
			}
			p.in <- good(0, 100, 0)(p).packet(p.echo)
			p.answers(p.nxt+200, p.blocks(700, 750, 600, 650, 500, 550))
			p.in <- good(200, 500, 0)(p).packet(p.echo)
			p.answers(p.nxt+750, nil)
			_, err := io.ReadFull(c, make([]byte, 750))
			must(t, err)
		})
	}
}

// fin has the stack send its FIN, and acknowledges that.
func (p *played) fin(c *Conn) {
	must(p.t, c.CloseWrite())
	for s := p.next(); !s.has(header.TCPFlagFin); {
		s = p.next()
	}
	p.ack++
	p.in <- p.made(p.nxt, nil).packet(p.echo)
}

// TestGapsNotPermitted: a peer whose SYN does not permit the option gets none after a FIN either.
func TestGapsNotPermitted(t *testing.T) {
	p, c, _ := playSYN(t, []byte{2, 4, 5, 0xb4, 1, 1, 8, 10, 0, 0x4c, 0x4b, 0x40, 0, 0, 0, 0, 1, 3, 3, 7})
	p.fin(c)
	p.in <- good(100, 50, 0)(p).packet(p.echo)
	p.in <- good(0, 100, 0)(p).packet(p.echo)
	p.until(p.nxt + 150)
	if len(p.sacks) > 0 {
		t.Errorf("got %v", p.sacks)
	}
}

// A sackLink counts the acknowledgements with SACK blocks that a stack sends after its FIN, and all packets that are
// spoiled.
type sackLink struct {
	Link
	fin           atomic.Bool
	acks, spoiled atomic.Int64
}

// Send is Link's.
func (l *sackLink) Send(packet []byte) {
	s, ok := parseSegment(packet)
	if !ok || !s.intact() {
		l.spoiled.Add(1)
	}
	if s.has(header.TCPFlagFin) {
		l.fin.Store(true)
	} else if l.fin.Load() && len(header.ParseTCPOptions(s.tcp.Options()).SACKBlocks) > 0 {
		l.acks.Add(1)
	}
	l.Link.Send(packet)
}

// TestLossAfterFIN: what a peer sends to a stack after that has sent its FIN arrives on a path that loses packets, and
// the peer hears of what arrives after a gap, over IPv4 and IPv6.
func TestLossAfterFIN(t *testing.T) {
	for _, address := range []string{"192.0.2.2:7174", "[2001:db8::2]:7174"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			one, other := Pipe(1500, Path{Seed: 1, Loss: .02, Delay: time.Millisecond},
				Path{Seed: 2, Loss: .02, Delay: time.Millisecond})
			link := &sackLink{Link: one}
			a, err := pairEnd(Config{}, link, "192.0.2.1", "2001:db8::1")
			must(t, err)
			b, err := pairEnd(Config{}, other, "192.0.2.2", "2001:db8::2")
			must(t, err)
			t.Cleanup(func() { must(t, errors.Join(a.Close(), b.Close())) })
			c, s := connect(t, a, b, address)
			must(t, c.CloseWrite())
			_, err = io.Copy(io.Discard, s)
			must(t, err)
			sent := make([]byte, 1<<20)
			rand.NewChaCha8([32]byte{1}).Read(sent)
			go func() {
				_, err := s.Write(sent)
				if err := errors.Join(err, s.CloseWrite()); err != nil {
					t.Error(err)
				}
			}()
			got, err := io.ReadAll(c)
			must(t, err)
			if acks, spoiled := link.acks.Load(), link.spoiled.Load(); acks == 0 || spoiled > 0 ||
				!bytes.Equal(got, sent) {
				t.Errorf("%d acknowledgements have SACK blocks, %d packets are spoiled, and what arrives is right: %t",
					acks, spoiled, bytes.Equal(got, sent))
			}
		})
	}
}

// TestNoRoomForGaps: an acknowledgement that has payload, the option or no room for it stays as it is, and as many
// blocks are added as there is room for, of those that lie after it.
func TestNoRoomForGaps(t *testing.T) {
	held := []header.SACKBlock{{Start: 50, End: 60}, {Start: 210, End: 220}, {Start: 230, End: 240},
		{Start: 250, End: 260}, {Start: 270, End: 280}, {Start: 290, End: 300}}
	ack := func(options, payload int) []byte {
		m := made{seq: 1, ack: 200, flags: header.TCPFlagAck,
			options: bytes.Repeat([]byte{header.TCPOptionNOP}, options), data: make([]byte, payload)}
		return m.packet(0)
	}
	for _, c := range []struct {
		name string
		ack  []byte
		held []header.SACKBlock
		want []header.SACKBlock
	}{
		{"no options", ack(0, 0), held, held[1:5]},
		{"a timestamp", ack(12, 0), held, held[1:4]},
		{"room for one", ack(28, 0), held, held[1:2]},
		{"no room", ack(32, 0), held, nil},
		{"full", ack(40, 0), held, nil},
		{"payload", ack(0, 1), held, nil},
		{"nothing held", ack(0, 0), nil, nil},
		{"nothing after it", ack(0, 0), held[:1], nil},
		{"has them", withSACK(ack(0, 0), held[5:]), held, held[5:]},
		{"no TCP", []byte{0x45}, held, nil},
	} {
		was := bytes.Clone(c.ack)
		got := withSACK(c.ack, c.held)
		s, ok := parseSegment(got)
		if ok && !s.intact() {
			t.Errorf("%s: bad checksum", c.name)
		}
		var blocks []header.SACKBlock
		if ok {
			blocks = header.ParseTCPOptions(s.tcp.Options()).SACKBlocks
		}
		if !slices.Equal(blocks, c.want) || c.want == nil && !bytes.Equal(got, was) {
			t.Errorf("%s: got %v, want %v", c.name, blocks, c.want)
		}
	}
}

// FuzzGaps: whatever is to be acknowledged, a packet is one segment with a right checksum, or as it was.
func FuzzGaps(f *testing.F) {
	f.Add(made{ack: 7, flags: header.TCPFlagAck}.packet(1), uint32(10), uint32(20))
	f.Add(made{ack: 7, flags: header.TCPFlagAck, noTime: true}.packet(1)[:39], uint32(1<<31), uint32(0))
	f.Fuzz(func(t *testing.T, packet []byte, from, to uint32) {
		was := bytes.Clone(packet)
		got := withSACK(packet, []header.SACKBlock{{Start: seqnum.Value(from), End: seqnum.Value(to)}})
		if bytes.Equal(got, was) {
			return
		}
		if s, ok := parseSegment(got); !ok || !s.intact() || len(got) != len(was)+12 {
			t.Errorf("%x became %x", was, got)
		}
	})
}
