package iwarp_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A peer is the other end of a connection, played by the test octet by octet: the
// plumbing is package script's, what is wanted is said here.
type peer struct {
	t       testing.TB
	conn    net.Conn
	link    *script.Link
	version uint8 // of DDP and RDMAP, which need not be what was agreed on
}

func newPeer(t testing.TB, c net.Conn) *peer {
	p := &peer{t: t, conn: c, link: script.NewLink(c)}
	p.operate(script.Terms{CRC: true, Version: 1})
	return p
}

// operate has the peer speak and listen on other terms from now on.
func (p *peer) operate(terms script.Terms) {
	p.version = terms.Version
	p.link.Operate(terms)
}

// becomeRDMAC has the peer speak as an RDMAC RNIC from now on: version 0, with markers
// both ways.
func (p *peer) becomeRDMAC() {
	p.operate(script.Terms{MarkersSend: true, MarkersReceive: true, CRC: true})
}

// dialPeer is a peer that connects.
func dialPeer(t testing.TB, addr net.Addr) *peer { return newPeer(t, dialTCP(t, addr.String())) }

// meanwhile has the peer do something while the test goes on. The test ends after it.
func (p *peer) meanwhile(do func()) {
	done := make(chan struct{})
	p.t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		do()
	}()
}

// send sends octets in one write.
func (p *peer) send(b []byte) {
	p.t.Helper()
	if err := p.link.Send(b); err != nil {
		p.t.Fatalf("peer: %v", err)
	}
}

// sendInTwo sends octets in two writes, or one if a part is empty.
func (p *peer) sendInTwo(b []byte, cut int) {
	p.t.Helper()
	for _, part := range [][]byte{b[:cut], b[cut:]} {
		if len(part) > 0 {
			p.send(part)
		}
	}
}

// request is a Request that the Responder has nothing against.
func request(rev uint8, ulp ...byte) mpa.StartupFields {
	d := mpa.DialectRFC5044
	if rev >= 2 {
		d = mpa.DialectRFC6581
	}
	f := script.Request(d, 8)
	f.Rev, f.ULP = rev, ulp
	return mpa.StartupFrame(f.Octets()).Fields()
}

// reply is a Reply that accepts such a Request.
func reply(rev uint8, ulp ...byte) mpa.StartupFields {
	f := request(rev, ulp...)
	f.Key = mpa.KeyReply
	return f
}

func enhanced(e mpa.Enhanced) []byte { return mpa.AppendEnhanced(nil, &e) }

func frame(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

// wantFrame takes one startup frame.
func (p *peer) wantFrame(key string) mpa.StartupFrame {
	p.t.Helper()
	b, err := p.link.Frame(time.Time{})
	if err != nil {
		p.t.Fatalf("peer: waiting for a %q: %v", key, err)
	}
	f, err := mpa.ParseStartup(b)
	if err != nil || f.Key() != key {
		p.t.Fatalf("peer: got %v (%v), want a %q", f, err, key)
	}
	return f
}

// wantOctets takes octets and compares them.
func (p *peer) wantOctets(want []byte) {
	p.t.Helper()
	if got, err := p.link.Octets(len(want), time.Time{}); err != nil || !bytes.Equal(got, want) {
		p.t.Fatalf("peer: got % x (%v), want % x", got, err, want)
	}
}

// start is the whole startup of a peer that is the Initiator of a connection.
func (p *peer) start(rev uint8) {
	p.t.Helper()
	p.send(frame(request(rev)))
	p.wantFrame(mpa.KeyReply)
	if rev >= 2 {
		p.send(p.write(1, 0, nil)) // the RTR indication
	}
}

// fpdu frames one segment.
func (p *peer) fpdu(h ddp.Header, payload []byte) []byte {
	return p.link.Segment(h, payload)
}

// message frames an untagged message of one segment.
func (p *peer) message(op rdmap.Opcode, msn uint32, payload []byte) []byte {
	h := op.Header(p.version)
	h.Last, h.MSN = true, msn
	return p.fpdu(h, payload)
}

// write frames an RDMA Write of one segment.
func (p *peer) write(stag uint32, to uint64, payload []byte) []byte {
	h := rdmap.OpWrite.Header(p.version)
	h.Last, h.STag, h.TO = true, stag, to
	return p.fpdu(h, payload)
}

// readRequest frames an RDMA Read Request.
func (p *peer) readRequest(msn uint32, r rdmap.ReadRequest) []byte {
	return p.message(rdmap.OpReadRequest, msn, r.Append(nil))
}

// want takes one segment.
func (p *peer) want(op rdmap.Opcode) ddp.Segment {
	p.t.Helper()
	s, err := p.link.NextSegment(time.Time{})
	if err != nil {
		p.t.Fatalf("peer: waiting for a %v: %v", op, err)
	}
	v, _ := rdmap.ParseControl(s.RsvdULP)
	if rdmap.OpcodeOf(&s.Header) != op || s.Version != p.version || v != p.version {
		p.t.Fatalf("peer: got %v, RDMAP version %d, want a %v of version %d", s.Header, v, op, p.version)
	}
	return s
}

// wantTerminate reads a Terminate.
func (p *peer) wantTerminate(code rdmap.Code) {
	p.t.Helper()
	s := p.want(rdmap.OpTerminate)
	got, err := rdmap.ParseTerminate(s.Payload)
	if err != nil || got.Code != code {
		p.t.Fatalf("peer: got a Terminate with %v (%v), want %v", got.Code, err, code)
	}
}

// wantFIN waits for the other end to close in order, and returns what came before.
func (p *peer) wantFIN() []byte {
	p.t.Helper()
	left, err := p.link.Rest(time.Time{})
	if err != nil || p.link.End() != script.FIN {
		p.t.Fatalf("peer: %q, then %v (%v), want a FIN", left, p.link.End(), err)
	}
	return left
}

// wantClosed waits for the other end to close: a FIN, or a RST if octets were in
// the way.
func (p *peer) wantClosed() {
	p.t.Helper()
	if left, err := p.link.Rest(time.Time{}); err != nil || len(left) > 0 {
		p.t.Fatalf("peer: got %q, want the end of the connection (%v)", left, err)
	}
}

// wantSilence expects nothing for a second of virtual time, less than any timeout.
func (p *peer) wantSilence() {
	p.t.Helper()
	if err := p.link.Need(1, time.Now().Add(time.Second)); !isTimeout(err) {
		p.t.Fatalf("peer: got % x (%v), want nothing", p.link.Received(), err)
	}
	_ = p.conn.SetReadDeadline(time.Time{})
}
