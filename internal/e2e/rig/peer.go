package rig

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// WorksBothWays is works, with a Write and a Read from the Responder too.
func WorksBothWays(t testing.TB, ini, res *End) {
	t.Helper()
	Works(t, ini, res)
	const n = 5000
	src, back := res.Filled(n, 7, 0), res.MR(n, iwarp.LocalWrite)
	WriteAndRead(t, res, src, back, ini.MR(n, iwarp.RemoteWrite|iwarp.RemoteRead))
}

// IsTimeout reports whether an error is that of a deadline.
func IsTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// SendPart sends a segment of a Send.
func (p *Peer) SendPart(msn, mo uint32, last bool, text string) {
	h := rdmap.OpSend.Header(1)
	h.Last, h.MSN, h.MO = last, msn, mo
	p.Send(p.FPDU(h, []byte(text)))
}

// A Peer is the other end of a connection, played by the test byte by byte: the
// plumbing is package script's, what is wanted is said here.
type Peer struct {
	T       testing.TB
	Conn    net.Conn
	Link    *script.Link
	Version uint8 // of DDP and RDMAP, which need not be what was agreed on
}

// NewPeer is the peer at the other end of c.
func NewPeer(t testing.TB, c net.Conn) *Peer {
	p := &Peer{T: t, Conn: c, Link: script.NewLink(c)}
	p.Operate(script.Terms{CRC: true, Version: 1})
	return p
}

// Operate has the peer speak and listen on other terms from now on.
func (p *Peer) Operate(terms script.Terms) {
	p.Version = terms.Version
	p.Link.Operate(terms)
}

// BecomeRDMAC has the peer speak as an RDMAC RNIC from now on: version 0, with markers
// both ways.
func (p *Peer) BecomeRDMAC() {
	p.Operate(script.Terms{MarkersSend: true, MarkersReceive: true, CRC: true})
}

// DialPeer is a peer that connects.
func DialPeer(t testing.TB, addr net.Addr) *Peer { return NewPeer(t, DialTCP(t, addr.String())) }

// Meanwhile has the peer do something while the test goes on. The test ends after it.
func (p *Peer) Meanwhile(do func()) {
	done := make(chan struct{})
	p.T.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		do()
	}()
}

// Send sends bytes in one write.
func (p *Peer) Send(b []byte) {
	p.T.Helper()
	if err := p.Link.Send(b); err != nil {
		p.T.Fatalf("peer: %v", err)
	}
}

// SendInTwo sends bytes in two writes, or one if a part is empty.
func (p *Peer) SendInTwo(b []byte, cut int) {
	p.T.Helper()
	for _, part := range [][]byte{b[:cut], b[cut:]} {
		if len(part) > 0 {
			p.Send(part)
		}
	}
}

// Request is a Request that the Responder has nothing against.
func Request(rev uint8, ulp ...byte) mpa.StartupFields {
	d := mpa.DialectRFC5044
	if rev >= 2 {
		d = mpa.DialectRFC6581
	}
	f := script.Request(d, 8)
	f.Rev, f.ULP = rev, ulp
	return mpa.StartupFrame(f.Bytes()).Fields()
}

// Reply is a Reply that accepts such a Request.
func Reply(rev uint8, ulp ...byte) mpa.StartupFields {
	f := Request(rev, ulp...)
	f.Key = mpa.KeyReply
	return f
}

// Enhanced is the private data of an enhanced startup frame.
func Enhanced(e mpa.Enhanced) []byte { return mpa.AppendEnhanced(nil, &e) }

// Frame is a startup frame as it is sent.
func Frame(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

// WantFrame takes one startup frame.
func (p *Peer) WantFrame(key string) mpa.StartupFrame {
	p.T.Helper()
	b, err := p.Link.Frame(time.Time{})
	if err != nil {
		p.T.Fatalf("peer: waiting for a %q: %v", key, err)
	}
	f, err := mpa.ParseStartup(b)
	if err != nil || f.Key() != key {
		p.T.Fatalf("peer: got %v (%v), want a %q", f, err, key)
	}
	return f
}

// WantBytes takes bytes and compares them.
func (p *Peer) WantBytes(want []byte) {
	p.T.Helper()
	if got, err := p.Link.Bytes(len(want), time.Time{}); err != nil || !bytes.Equal(got, want) {
		p.T.Fatalf("peer: got % x (%v), want % x", got, err, want)
	}
}

// Start is the whole startup of a peer that is the Initiator of a connection.
func (p *Peer) Start(rev uint8) {
	p.T.Helper()
	p.Send(Frame(Request(rev)))
	p.WantFrame(mpa.KeyReply)
	if rev >= 2 {
		p.Send(p.Write(1, 0, nil)) // the RTR indication
	}
}

// FPDU frames one segment.
func (p *Peer) FPDU(h ddp.Header, payload []byte) []byte {
	return p.Link.Segment(h, payload)
}

// Message frames an untagged message of one segment.
func (p *Peer) Message(op rdmap.Opcode, msn uint32, payload []byte) []byte {
	h := op.Header(p.Version)
	h.Last, h.MSN = true, msn
	return p.FPDU(h, payload)
}

// Write frames an RDMA Write of one segment.
func (p *Peer) Write(stag uint32, to uint64, payload []byte) []byte {
	h := rdmap.OpWrite.Header(p.Version)
	h.Last, h.STag, h.TO = true, stag, to
	return p.FPDU(h, payload)
}

// ReadRequest frames an RDMA Read Request.
func (p *Peer) ReadRequest(msn uint32, r rdmap.ReadRequest) []byte {
	return p.Message(rdmap.OpReadRequest, msn, r.Append(nil))
}

// Want takes one segment.
func (p *Peer) Want(op rdmap.Opcode) ddp.Segment {
	p.T.Helper()
	s, err := p.Link.NextSegment(time.Time{})
	if err != nil {
		p.T.Fatalf("peer: waiting for a %v: %v", op, err)
	}
	v, _ := rdmap.ParseControl(s.RsvdULP)
	if rdmap.OpcodeOf(&s.Header) != op || s.Version != p.Version || v != p.Version {
		p.T.Fatalf("peer: got %v, RDMAP version %d, want a %v of version %d", s.Header, v, op, p.Version)
	}
	return s
}

// WantTerminate reads a Terminate.
func (p *Peer) WantTerminate(code rdmap.Code) {
	p.T.Helper()
	s := p.Want(rdmap.OpTerminate)
	got, err := rdmap.ParseTerminate(s.Payload)
	if err != nil || got.Code != code {
		p.T.Fatalf("peer: got a Terminate with %v (%v), want %v", got.Code, err, code)
	}
}

// WantFIN waits for the other end to close in order, and returns what came before.
func (p *Peer) WantFIN() []byte {
	p.T.Helper()
	left, err := p.Link.Rest(time.Time{})
	if err != nil || p.Link.End() != script.FIN {
		p.T.Fatalf("peer: %q, then %v (%v), want a FIN", left, p.Link.End(), err)
	}
	return left
}

// WantClosed waits for the other end to close: a FIN, or a RST if bytes were in
// the way.
func (p *Peer) WantClosed() {
	p.T.Helper()
	if left, err := p.Link.Rest(time.Time{}); err != nil || len(left) > 0 {
		p.T.Fatalf("peer: got %q, want the end of the connection (%v)", left, err)
	}
}

// WantSilence expects nothing for a second of virtual time, less than any timeout.
func (p *Peer) WantSilence() {
	p.T.Helper()
	if err := p.Link.Need(1, time.Now().Add(time.Second)); !IsTimeout(err) {
		p.T.Fatalf("peer: got % x (%v), want nothing", p.Link.Received(), err)
	}
	_ = p.Conn.SetReadDeadline(time.Time{})
}
