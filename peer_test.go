package iwarp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A peer is the other end of a connection, played by the test octet by octet with
// the product's own codecs, which write illegal values too.
type peer struct {
	t       testing.TB
	conn    net.Conn
	version uint8 // of DDP and RDMAP
	tx      mpa.Writer
	rx      mpa.Reader
	in      []byte // read and not looked at
}

func newPeer(t testing.TB, c net.Conn) *peer {
	return &peer{t: t, conn: c, version: 1, tx: mpa.NewWriter(false, true), rx: mpa.NewReader(false, true)}
}

// becomeRDMAC has the peer speak as an RDMAC RNIC from now on: version 0, with markers
// both ways.
func (p *peer) becomeRDMAC() {
	p.version, p.tx, p.rx = 0, mpa.NewWriter(true, true), mpa.NewReader(true, true)
}

// dialPeer is a peer that connects.
func dialPeer(t testing.TB, addr net.Addr) *peer { return newPeer(t, dialTCP(t, addr.String())) }

// send sends octets in one write.
func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
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
	f := mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: rev, PrivateData: ulp}
	if rev >= 2 {
		f.S = true
		f.PrivateData = append(enhanced(mpa.Enhanced{A: true, C: true, D: true, IRD: 8, ORD: 8}), ulp...)
	}
	return f
}

// reply is a Reply that accepts such a Request.
func reply(rev uint8, ulp ...byte) mpa.StartupFields {
	f := request(rev, ulp...)
	f.Key = mpa.KeyReply
	return f
}

func enhanced(e mpa.Enhanced) []byte { return mpa.AppendEnhanced(nil, &e) }

func frame(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

// wantFrame reads one startup frame and no more.
func (p *peer) wantFrame(key string) mpa.StartupFrame {
	p.t.Helper()
	b := make([]byte, mpa.StartupHeaderLen)
	p.read(b)
	b = append(b, make([]byte, mpa.StartupFrame(b).PDLength())...)
	p.read(b[mpa.StartupHeaderLen:])
	f, err := mpa.ParseStartup(b)
	if err != nil || f.Key() != key {
		p.t.Fatalf("peer: got %v (%v), want a %q", f, err, key)
	}
	return f
}

func (p *peer) read(b []byte) {
	p.t.Helper()
	if _, err := io.ReadFull(p.conn, b); err != nil {
		p.t.Fatalf("peer: %v", err)
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
	return p.tx.Append(nil, h.Append(nil), payload)
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

// want reads one segment.
func (p *peer) want(op rdmap.Opcode) ddp.Segment {
	p.t.Helper()
	for {
		f, n, err := p.rx.Next(p.in)
		if err != nil {
			p.t.Fatalf("peer: %v", err)
		}
		if n == 0 {
			p.more(op)
			continue
		}
		s, err := ddp.Parse(bytes.Clone(f.ULPDU))
		p.in = p.in[n:]
		v, _ := rdmap.ParseControl(s.RsvdULP)
		if err != nil || rdmap.OpcodeOf(&s.Header) != op || s.Version != p.version || v != p.version {
			p.t.Fatalf("peer: got %v (%v), RDMAP version %d, want a %v of version %d", s.Header, err, v, op, p.version)
		}
		return s
	}
}

func (p *peer) more(op rdmap.Opcode) {
	p.t.Helper()
	var b [4096]byte
	n, err := p.conn.Read(b[:])
	if err != nil {
		p.t.Fatalf("peer: waiting for a %v: %v", op, err)
	}
	p.in = append(p.in, b[:n]...)
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
	left, err := io.ReadAll(p.conn)
	if err != nil {
		p.t.Fatalf("peer: %q, then %v, want a FIN", left, err)
	}
	return left
}

// wantClosed waits for the other end to close: a FIN, or a RST if octets were in
// the way.
func (p *peer) wantClosed() {
	p.t.Helper()
	if left, ok := p.drain(); !ok || len(left) > 0 {
		p.t.Fatalf("peer: got %q, want the end of the connection (%v)", left, ok)
	}
}

// drain reads to the end.
func (p *peer) drain() (left []byte, closed bool) {
	left, err := io.ReadAll(p.conn)
	var timeout net.Error
	return left, err == nil || !(errors.As(err, &timeout) && timeout.Timeout())
}
