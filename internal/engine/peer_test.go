package engine

import (
	"bytes"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A peer is the other end of one QP, played by the test FPDU by FPDU with the
// product's own codecs, which write illegal fields too.
type peer struct {
	*host
	clock time.Time
	w     mpa.Writer
	r     mpa.Reader
	sent  []byte // what the QP sent and the test has not looked at
	split int    // bytes that reach the QP at once; 0: all

	unopened [][]byte // what it sent where segments are not framed
}

// newPeer connects a QP of a role to a scripted peer.
func newPeer(t rapid.TB, role mpa.Role, change ...func(*setup)) *peer {
	s := newSetup(role)
	for _, f := range change {
		f(s)
	}
	p := &peer{clock: epoch}
	p.host = newHost(t, &p.clock, s)
	p.start(s)
	return p
}

// start connects the QP, for the first time or again.
func (p *peer) start(s *setup) {
	p.connect(s)
	p.w, p.r = mpa.NewWriter(s.MarkersReceive, s.CRC), mpa.NewReader(s.MarkersSend, s.CRC)
	p.sent, p.unread = nil, nil
}

// initiator connects an Initiator: it may send at once.
func initiator(t rapid.TB, change ...func(*setup)) *peer {
	return newPeer(t, mpa.RoleInitiator, change...)
}

// responder connects a Responder: it must not send before it was sent an FPDU.
func responder(t rapid.TB, change ...func(*setup)) *peer {
	return newPeer(t, mpa.RoleResponder, change...)
}

// An fpdu is one DDP Segment of either direction.
type fpdu struct {
	H       ddp.Header
	Payload []byte
}

func message(op rdmap.Opcode, payload []byte) fpdu {
	h := op.Header(1)
	h.Last = true
	if !h.Tagged {
		h.MSN = ddp.FirstMSN
	}
	return fpdu{h, payload}
}

// write is a segment of an RDMA Write.
func write(stag uint32, to uint64, p []byte) fpdu {
	f := message(rdmap.OpWrite, p)
	f.H.STag, f.H.TO = stag, to
	return f
}

// response is a segment of a Read Response.
func response(stag uint32, to uint64, p []byte) fpdu {
	f := message(rdmap.OpReadResponse, p)
	f.H.STag, f.H.TO = stag, to
	return f
}

// send is a segment of a Send.
func send(msn uint32, p []byte) fpdu {
	f := message(rdmap.OpSend, p)
	f.H.MSN = msn
	return f
}

// sendAs is a segment of one of the four Sends.
func sendAs(op rdmap.Opcode, msn, invalidate uint32, p []byte) fpdu {
	f := message(op, p)
	f.H.MSN, f.H.ULP = msn, invalidate
	return f
}

// request is a Read Request.
func request(msn uint32, r rdmap.ReadRequest) fpdu {
	f := message(rdmap.OpReadRequest, r.Append(nil))
	f.H.MSN = msn
	return f
}

// terminate is a Terminate for an error without headers.
func terminate(c rdmap.Code) fpdu {
	t := rdmap.Terminate{Code: c}
	return message(rdmap.OpTerminate, t.Append(nil))
}

// terminateFor is a Terminate for an error found on a segment.
func terminateFor(c rdmap.Code, f fpdu) fpdu {
	s := f.segment()
	t := rdmap.TerminateFor(c, &s)
	return message(rdmap.OpTerminate, t.Append(nil))
}

// more clears the L bit.
func (f fpdu) more() fpdu { f.H.Last = false; return f }

// at sets the MO.
func (f fpdu) at(mo int) fpdu { f.H.MO = uint32(mo); return f }

// with changes any field of the header.
func (f fpdu) with(change func(*ddp.Header)) fpdu { change(&f.H); return f }

func (f fpdu) segment() ddp.Segment {
	return ddp.Segment{Header: f.H, Raw: f.H.Append(nil), Payload: f.Payload}
}

func (f fpdu) ulpdu() []byte { return append(f.H.Append(nil), f.Payload...) }

// send hands segments to the QP, each in an FPDU.
func (p *peer) send(fs ...fpdu) {
	for _, f := range fs {
		p.sendRaw(f.ulpdu())
	}
}

// sendRaw hands any ULPDU to the QP in an FPDU.
func (p *peer) sendRaw(ulpdu []byte) { p.sendBytes(p.w.Append(nil, ulpdu)) }

// sendBytes hands bytes to the QP.
func (p *peer) sendBytes(b []byte) {
	step := p.split
	if step == 0 {
		step = len(b)
	}
	for ; len(b) > 0; b = b[min(step, len(b)):] {
		p.input(b[:min(step, len(b))])
	}
}

// next returns the next segment that the QP sends, if there is one.
func (p *peer) next() (f fpdu, ok bool) {
	p.Helper()
	if p.Machine.Layer == LayerMessages {
		return p.nextLetter()
	}
	p.sent = append(p.sent, p.output()...)
	frame, n, err := p.r.Next(p.sent)
	if err != nil {
		p.Fatalf("the QP sent: %v", err)
	}
	if n == 0 {
		return f, false
	}
	p.sent = p.sent[n:]
	s, err := ddp.Parse(frame.ULPDU)
	if err != nil {
		p.Fatalf("the QP sent: %v", err)
	}
	return fpdu{s.Header, s.Payload}, true
}

// nextLetter is next where segments are not framed.
func (p *peer) nextLetter() (f fpdu, ok bool) {
	p.Helper()
	if p.unopened = append(p.unopened, p.letters()...); len(p.unopened) == 0 {
		return f, false
	}
	s, err := ddp.Parse(p.unopened[0])
	if err != nil {
		p.Fatalf("the QP sent: %v", err)
	}
	p.unopened = p.unopened[1:]
	return fpdu{s.Header, s.Payload}, true
}

// want expects the QP to send exactly these segments next.
func (p *peer) want(want ...fpdu) {
	p.Helper()
	for i, w := range want {
		got, ok := p.next()
		if !ok {
			p.Fatalf("segment %d is not sent: %v; state %v, cause: %v", i, w.H, p.Machine.State(), p.Machine.Cause())
		}
		if got.H != w.H || !bytes.Equal(got.Payload, w.Payload) {
			p.Fatalf("segment %d is %v (-want +got):\n%s", i, got.H, cmp.Diff(w, got, cmpopts.EquateEmpty()))
		}
	}
}

// wantNothing expects the QP to send nothing more now.
func (p *peer) wantNothing() {
	p.Helper()
	if f, ok := p.next(); ok || len(p.sent) > 0 {
		p.Fatalf("sends %v and %d bytes", f.H, len(p.sent))
	}
}

// wantTerminate expects the connection to end with a Terminate, a FIN after it
// and nothing more, once the peer has closed too.
func (p *peer) wantTerminate(want fpdu) {
	p.Helper()
	p.want(want)
	p.wantEnd(Terminate, Finish)
}

// wantEnd expects a state, a FIN and nothing after it, and the end.
func (p *peer) wantEnd(s State, how LLP) {
	p.Helper()
	p.wantNothing()
	p.wantState(s)
	p.wantLLP(how)
	p.fin()
	p.wantNothing()
	p.wantLLP(Drop)
}

// wantCause expects the connection to have ended over an error found here.
func (p *peer) wantCause(c rdmap.Code, byPeer bool) *Failure {
	p.Helper()
	var f *Failure
	if !errors.As(p.Machine.Cause(), &f) || f.Code != c || f.Peer != byPeer {
		p.Fatalf("cause %v, want %v, by the peer: %t", p.Machine.Cause(), c, byPeer)
	}
	return f
}

// advance lets time pass, up to each deadline on the way.
func (p *peer) advance(d time.Duration) {
	end := p.clock.Add(d)
	for {
		at := p.Machine.Deadline()
		if at.IsZero() || at.After(end) {
			break
		}
		p.clock = at
		p.Machine.HandleTimeout(p.clock)
		p.collectOutputs()
		if p.Machine.Deadline().Equal(at) {
			p.Fatal("the deadline stays where it is")
		}
		p.sent = append(p.sent, p.output()...)
	}
	p.clock = end
}
