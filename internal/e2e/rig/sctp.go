package rig

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/sctp"
)

// SendAhead is a Send of 1000 bytes, header and all, with the DDP-SSN and MSN given.
func SendAhead(ssn uint16, msn uint32) string {
	b := binary.BigEndian.AppendUint16(nil, ssn)
	b = append(b, 0x41, 0x43, 0, 0, 0, 0) // L, DV 1; RV 1, Send
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, msn)
	b = binary.BigEndian.AppendUint32(b, 0)
	return string(append(b, make([]byte, 1000-18)...))
}

// Idles brings up a connection whose Responder ends it when nothing has come for a while. On a busy machine that
// may be before it is up: then the while is longer.
func (s Setup) Idles(t *testing.T) (ini, res *End) {
	t.Helper()
	for limit := 20 * time.Millisecond; ; limit *= 2 {
		s.Accept.QP.IdleTimeout = limit
		ini, res, err := s.Try(t)
		if err == nil {
			return ini, res
		}
		if limit > Soon {
			t.Fatal(err)
		}
	}
}

// CloseBoth closes both ends at once.
func CloseBoth(t testing.TB, a, b *iwarp.QP) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	Must(t, a.Close())
	Must(t, <-closed)
}

// A SCTPPeer is scripted: it has an association with a Listener of ours, and says what it likes in it.
type SCTPPeer struct {
	*testing.T
	*sctpudp.Conn
	heard chan sctp.Message
	Lost  chan error
}

// NewSCTPPeer has a peer begin an association with a Listener.
func NewSCTPPeer(t *testing.T, ln *iwarp.Listener) *SCTPPeer {
	t.Helper()
	return NewSCTPPeerFrom(t, ln, net.IPv4(127, 0, 0, 1))
}

// NewSCTPPeerFrom does so from this address.
func NewSCTPPeerFrom(t *testing.T, ln *iwarp.Listener, ip net.IP) *SCTPPeer {
	t.Helper()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: ip})
	Must(t, err)
	e := sctpudp.New(pc, false, sctpudp.Config{})
	t.Cleanup(func() { e.Close() })
	c, err := e.Dial(Within(t), netip.MustParseAddrPort(ln.Addr().String()))
	Must(t, err)
	p := &SCTPPeer{t, c, make(chan sctp.Message, 100), make(chan error, 1)}
	go c.Run(func(m sctp.Message) { p.heard <- m }, func(uint16, uint64) {}, func(err error) { p.Lost <- err })
	return p
}

// Says sends a message on stream 0.
func (p *SCTPPeer) Says(ppid uint32, data string) {
	p.Helper()
	Must(p.T, p.Send(sctp.Message{PPID: ppid, Data: []byte(data)}))
}

// Hears waits for the next message.
func (p *SCTPPeer) Hears() sctp.Message {
	p.Helper()
	select {
	case m := <-p.heard:
		return m
	case <-time.After(Soon):
		p.Fatal("nothing has come")
		panic("")
	}
}

// Opens opens a session on another stream, and returns our QP.
func (p *SCTPPeer) Opens(stream uint16, ln *iwarp.Listener) *iwarp.QP {
	p.Helper()
	Must(p.T, p.Send(sctp.Message{Stream: stream, PPID: 17, Data: []byte("\x00\x00\x00\x01")}))
	req, err := ln.Accept(Within(p.T))
	Must(p.T, err)
	qp, err := req.Accept(Within(p.T), iwarp.AcceptConfig{})
	Must(p.T, err)
	if m := p.Hears(); m.Stream != stream || string(m.Data) != "\x00\x00\x00\x02" {
		p.Fatalf("answered %+v", m)
	}
	return qp
}

// Ended has the peer do its part of the end as soon as it hears of it.
func (p *SCTPPeer) Ended(res *End) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for res.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	return done
}

// WantTerminated expects a Terminate of RDMAP and one of the session, in either order.
func (p *SCTPPeer) WantTerminated() {
	p.Helper()
	got := map[uint32]string{}
	for range 2 {
		m := p.Hears()
		got[m.PPID] = string(m.Data)
	}
	if got[17] != "\x00\x02\x00\x04" || len(got[16]) < 20 || got[16][:2] != "\x00\x01" ||
		fmt.Sprintf("%x", got[16][20:22]) != "2005" {
		p.Errorf("told % x", got)
	}
}
