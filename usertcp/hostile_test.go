package usertcp

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A hostile segment, and what is to become of it.
type hostile struct {
	name   string
	before func(p *played) made // a correct one that comes first
	make   func(p *played) made
	cut    bool // in two fragments
	shown  bool
	takes  bool // TCP takes it, too
	resets bool // TCP ends the connection
	mixed  bool // what Read returns may not be what was shown
	asks   int  // acknowledgements of nothing new, without what TCP holds, that come back
	fin    int  // how many bytes the peer's half has, from the segment in front on, if there is a FIN
}

// ahead returns a correct segment, so many bytes ahead.
func (p *played) ahead(by uint32, n int) made { return p.made(p.nxt+by, bytes.Repeat([]byte{evil}, n)) }

// spoiled returns how one that is 100 bytes ahead is made, with something spoiled.
func spoiled(spoil func(m *made, p *played)) func(p *played) made {
	return func(p *played) made {
		m := p.ahead(100, 100)
		spoil(&m, p)
		return m
	}
}

// reset returns how a RST that is 100 bytes ahead is made, with something else about it.
func reset(change func(m *made, p *played)) func(p *played) made {
	return func(p *played) made {
		m := p.made(p.nxt+100, nil)
		m.flags |= header.TCPFlagRst
		change(&m, p)
		return m
	}
}

// syn is reset for a SYN.
func syn(change func(m *made, p *played)) func(p *played) made {
	return reset(func(m *made, p *played) {
		m.flags, m.options = header.TCPFlagSyn, synOptions
		change(m, p)
	})
}

func good(by uint32, n int, flags header.TCPFlags) func(p *played) made {
	return func(p *played) made {
		m := p.made(p.nxt+by, bytes.Repeat([]byte("g"), n))
		m.flags |= flags
		return m
	}
}

var hostiles = []hostile{
	{name: "correct", make: spoiled(func(*made, *played) {}), shown: true, takes: true},
	{name: "TCP checksum", make: spoiled(func(m *made, _ *played) { m.spoil = true })},
	{name: "IP checksum", make: spoiled(func(m *made, _ *played) { m.spoilIP = true })},
	{name: "beyond the window", make: func(p *played) made { return p.ahead(p.edge-p.nxt+1, 100) }, asks: 1},
	{name: "half of all numbers away", make: func(p *played) made { return p.ahead(1<<31, 100) }, asks: 1},
	{name: "no ACK", make: spoiled(func(m *made, _ *played) { m.flags = header.TCPFlagPsh })},
	{name: "SYN and ACK", make: spoiled(func(m *made, _ *played) { m.flags |= header.TCPFlagSyn }), asks: 1},
	{name: "old duplicate, other bytes", make: func(p *played) made { m := p.ahead(0, 50); m.seq -= 50; return m },
		asks: 1},
	{name: "fragments", make: spoiled(func(*made, *played) {}), cut: true, takes: true},
	{name: "first fragment that looks whole", make: spoiled(func(m *made,
		_ *played) {
		m.more = true
		m.data = append(m.data, evil, evil, evil, evil)
	})},
	{name: "later fragment that looks whole", make: spoiled(func(m *made, _ *played) { m.offset = 8 })},
	{name: "IP option", make: spoiled(func(m *made, _ *played) { m.withOption = true }), takes: true},
	{name: "ends one byte beyond the window", make: func(p *played) made { return p.ahead(p.edge-p.nxt-99, 100) },
		takes: true},
	{name: "begins where the window ends", make: func(p *played) made { return p.ahead(p.edge-p.nxt, 100) },
		takes: true},
	{name: "RST beyond the window", make: func(p *played) made {
		m := p.ahead(p.edge-p.nxt+5000, 100)
		m.flags |= header.TCPFlagRst
		return m
	}},
	{name: "RST where the window ends", make: reset(func(m *made, p *played) { m.seq = p.edge })},
	{name: "RST before the window", make: reset(func(m *made, p *played) { m.seq = p.nxt - 1 })},
	{name: "RST within the window", make: spoiled(func(m *made, _ *played) { m.flags |= header.TCPFlagRst }), asks: 1},
	{name: "RST at the first of the window that is not next",
		make: reset(func(m *made, p *played) { m.seq = p.nxt + 1 }), asks: 1},
	{name: "RST at the last of the window", make: reset(func(m *made, p *played) { m.seq = p.edge - 1 }), asks: 1},
	{name: "RST within the window behind an IP option",
		make: reset(func(m *made, _ *played) { m.withOption = true }), asks: 1},
	{name: "RST within the window in fragments", make: spoiled(func(m *made,
		_ *played) {
		m.flags |= header.TCPFlagRst
	}), cut: true, asks: 1},
	{name: "RST within the window, TCP checksum", make: reset(func(m *made, _ *played) { m.spoil = true })},
	{name: "RST within the window without ACK", make: reset(func(m *made, _ *played) { m.flags = header.TCPFlagRst }),
		asks: 1},
	{name: "RST that is next", make: reset(func(m *made, p *played) { m.seq = p.nxt }), resets: true},
	{name: "RST that is next, old timestamp", make: reset(func(m *made, p *played) { m.seq, m.time = p.nxt, 1 }),
		resets: true},
	{name: "RST that is next, no timestamp", make: reset(func(m *made, p *played) { m.seq, m.noTime = p.nxt, true }),
		resets: true},
	{name: "RST that is next behind an IP option",
		make: reset(func(m *made, p *played) { m.seq, m.withOption = p.nxt, true }), resets: true},
	{name: "SYN within the window", make: syn(func(*made, *played) {}), asks: 1},
	{name: "SYN beyond the window", make: syn(func(m *made, p *played) { m.seq = p.edge + 5000 }), asks: 1},
	{name: "SYN half of all numbers away", make: syn(func(m *made, _ *played) { m.seq += 1 << 31 }), asks: 1},
	{name: "SYN that is next", make: syn(func(m *made, p *played) { m.seq = p.nxt }), asks: 1},
	{name: "SYN behind an IP option", make: syn(func(m *made, _ *played) { m.withOption = true }), asks: 1},
	{name: "SYN, TCP checksum", make: syn(func(m *made, _ *played) { m.spoil = true })},
	{name: "SYN and RST within the window", make: syn(func(m *made, _ *played) { m.flags |= header.TCPFlagRst }),
		asks: 1},
	{name: "acknowledges what was never sent", make: spoiled(func(m *made, _ *played) { m.ack += 100_000 }), asks: 1},
	{name: "acknowledges the first that was never sent", make: spoiled(func(m *made, _ *played) { m.ack++ }), asks: 1},
	{name: "acknowledges what is long ago", make: spoiled(func(m *made, _ *played) { m.ack -= 1 << 30 }), asks: 1},
	{name: "acknowledges more than the largest window ago",
		make: spoiled(func(m *made, _ *played) { m.ack -= 60000<<7 + 1 }), asks: 1},
	{name: "acknowledges the largest window ago", make: spoiled(func(m *made, _ *played) { m.ack -= 60000 << 7 }),
		shown: true, takes: true},
	{name: "acknowledges what was never sent, behind an IP option",
		make: spoiled(func(m *made, _ *played) { m.ack++; m.withOption = true }), asks: 1},
	{name: "acknowledges what was never sent, TCP checksum",
		make: spoiled(func(m *made, _ *played) { m.ack++; m.spoil = true })},
	{name: "old timestamp", make: spoiled(func(m *made, _ *played) { m.time -= 100_000 }), takes: true},
	{name: "no timestamp", make: spoiled(func(m *made, _ *played) { m.noTime = true }), takes: true},
	{name: "URG", make: spoiled(func(m *made, _ *played) { m.flags |= header.TCPFlagUrg }), takes: true},
	{name: "in front of a FIN", before: good(200, 100, header.TCPFlagFin), make: spoiled(func(*made, *played) {}),
		shown: true, takes: true, fin: 300},
	{name: "after a FIN", before: good(100, 100, header.TCPFlagFin),
		make: func(p *played) made { return p.ahead(200, 100) }, takes: true, fin: 200},
	{name: "after a FIN without bytes", before: good(200, 0, header.TCPFlagFin),
		make: func(p *played) made { return p.ahead(200, 100) }, takes: true, fin: 200, asks: 1},
	{name: "ends beyond a FIN", before: good(120, 30, header.TCPFlagFin),
		make: func(p *played) made { return p.ahead(100, 100) }, takes: true, mixed: true, fin: 150},
	{name: "other bytes at the same place", before: good(100, 100, 0), make: spoiled(func(*made, *played) {}),
		shown: true, takes: true},
	{name: "other bytes from a lower place on", before: good(100, 100, 0),
		make: func(p *played) made { return p.ahead(50, 150) }, shown: true, takes: true, mixed: true},
}

// TestHostile sends segments that a careful TCP refuses to a stack, one for each connection. None of them is shown,
// though gVisor's TCP takes some. What is shown is what Read returns later. What may be made up by somebody who does
// not see the connection does not reach TCP, and the peer is asked.
//
// Proves U01, U02, U03, U05, U06: RFC 5961, sections 3.2, 4.2 and 5.2.
func TestHostile(t *testing.T) {
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p, c, seen := play(t)
			if h.before != nil {
				p.in <- h.before(p).packet(p.echo)
			}
			m := h.make(p)
			h.send(p, m)
			asked, next := 0, p.nxt
			p.sends([]byte("m")) // when it is acknowledged TCP has looked at all before
			for before(p.acked, p.nxt) && !p.reset {
				if s := p.next(); s.flags == header.TCPFlagAck && s.ack == next &&
					len(header.ParseTCPOptions(s.tcp.Options()).SACKBlocks) == 0 {
					asked++
				}
			}
			if asked != h.asks {
				t.Errorf("TCP asks %d times, want %d", asked, h.asks)
			}
			h.judge(t, p, m, seen)
			if !h.resets {
				h.rest(t, p, c, seen)
			} else if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func (h *hostile) send(p *played, m made) {
	packet := m.packet(p.echo)
	if !h.cut {
		p.in <- packet
		return
	}
	first, second := fragments(packet)
	p.in <- first
	p.in <- second
}

// judge compares what has become of the segment with what is to become of it.
func (h *hostile) judge(t *testing.T, p *played, m made, seen *shown) {
	t.Helper()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if want := map[bool]int{true: len(m.data)}[h.shown]; seen.evil != want {
		t.Errorf("%d bytes of it were shown, want %d", seen.evil, want)
	}
	if took := p.took(m.seq, m.seq+uint32(len(m.data))); took != h.takes {
		t.Errorf("taken by TCP: %t, want %t (SACK %v from %d on)", took, h.takes, p.sacks, p.nxt)
	}
	if p.reset != h.resets {
		t.Errorf("connection gone: %t", p.reset)
	}
}

// rest sends what is missing, and compares what Read returns with what was shown.
func (h *hostile) rest(t *testing.T, p *played, c *Conn, seen *shown) {
	t.Helper()
	first, length := p.nxt-1, 400 // of the byte that followed the segment
	for n := 49; p.nxt-first < 400; n = 50 {
		p.sends(bytes.Repeat([]byte("g"), n))
	}
	ack := p.nxt
	if h.fin > 0 {
		length, ack = h.fin, first+uint32(h.fin)+1
	}
	p.until(ack)
	all := make([]byte, length)
	_, err := io.ReadFull(c, all)
	must(t, err)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for i, b := range all {
		if was, ok := seen.bytes[uint64(i)]; ok && was != b && !h.mixed {
			t.Fatalf("byte %d: %q was shown, and %q is read", i, was, b)
		}
	}
}
