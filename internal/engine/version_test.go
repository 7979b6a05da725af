package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// version0 is what a connection with an RDMAC RNIC has.
func version0(s *setup) {
	s.Dialect, s.DDPVersion, s.RDMAPVersion = mpa.DialectRevision0, 0, 0
	s.MarkersSend, s.MarkersReceive = true, true
}

// ofVersion gives a segment the versions of DDP and RDMAP.
func (f fpdu) ofVersion(ddpVersion, rdmapVersion uint8) fpdu {
	_, op := rdmap.ParseControl(f.H.RsvdULP)
	f.H.Version, f.H.RsvdULP = ddpVersion, rdmap.Control(rdmapVersion, op)
	return f
}

// Every message goes with the version of the connection in both headers.
//
// Proves N06, N02.
func TestVersion0(t *testing.T) {
	p := initiator(t, version0)
	buf := numbered(700)
	r := p.region(buf, remoteAll)
	p.receive(1, all(r, 700))
	p.post(work(2, OpSend, all(r, 700)))
	w := work(3, OpWrite, all(r, 5))
	w.RemoteSTag = 9
	p.post(w)
	p.post(work(4, OpRead, all(r, 8)))
	p.want(
		send(1, buf).ofVersion(0, 0),
		write(9, 0, buf[:5]).ofVersion(0, 0),
		request(1, rdmap.ReadRequest{SinkSTag: r.STag(), Size: 8}).ofVersion(0, 0),
	)
	p.send(response(r.STag(), 0, []byte("abcdefgh")).ofVersion(0, 0))
	p.send(send(1, numbered(700)).ofVersion(0, 0))
	p.send(request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 3, SrcSTag: r.STag()}).ofVersion(0, 0))
	p.want(response(5, 0, buf[:3]).ofVersion(0, 0))
	p.completion(success(2, OpSend, 700), success(3, OpWrite, 5), success(4, OpRead, 8), success(1, OpReceive, 700))
	p.wantState(RTS)
}

// A segment of the other version, in either header, ends the connection with the code
// of that layer; the Terminate has the connection's own.
//
// Proves N02, N06, D13, P05.
func TestMixedVersions(t *testing.T) {
	for own, change := range []func(*setup){version0, func(*setup) {}} {
		v, other := uint8(own), uint8(1-own)
		for _, c := range []struct {
			name string
			seg  fpdu
			code rdmap.Code
		}{
			{"a Send", send(1, nil).ofVersion(other, other), 0x1206},
			{"a Write", write(1, 0, nil).ofVersion(other, other), 0x1104},
			{"a Send of another DDP version", send(1, nil).ofVersion(other, v), 0x1206},
			{"a Send of another RDMAP version", send(1, nil).ofVersion(v, other), 0x0205},
			{"a Write of another RDMAP version", write(1, 0, nil).ofVersion(v, other), 0x0205},
			{"a version that does not exist", send(1, nil).ofVersion(2, 2), 0x1206},
		} {
			p := responder(t, change)
			p.receive(1)
			p.send(c.seg)
			p.want(terminateFor(c.code, c.seg).ofVersion(v, v))
			p.wantCause(c.code, false)
			p.completion(flushed(1, OpReceive))
		}
	}
}

// No connection mixes versions.
//
// Proves N02.
func TestConnectVersions(t *testing.T) {
	for _, v := range [][2]uint8{{0, 1}, {1, 0}, {2, 2}} {
		s := newSetup(mpa.RoleInitiator)
		q := New(s.Config)
		s.DDPVersion, s.RDMAPVersion = v[0], v[1]
		if err := q.Connect(&s.Params); !errors.Is(err, ErrVersions) || q.State() != Idle {
			t.Errorf("%v: %v, in state %v", v, err, q.State())
		}
	}
}

// The Responder that got an Rtr frame sends at once, the one with a Start Key waits for
// an FPDU, as every other does. A nudge is none of a Responder's business.
//
// Proves T03, K03, Q11.
func TestWhoBegins(t *testing.T) {
	for _, c := range []struct {
		dialect mpa.Dialect
		version uint8
		first   bool
	}{
		{mpa.DialectRFC5044, 1, false},
		{mpa.DialectRtr, 1, true},
		{mpa.DialectRevision0, 0, false},
		{mpa.DialectStartKey, 0, false},
	} {
		p := responder(t, func(s *setup) {
			s.Dialect, s.DDPVersion, s.RDMAPVersion, s.SendFirst = c.dialect, c.version, c.version, c.first
			s.Nudge = time.Second
		})
		p.post(work(1, OpSend))
		if !c.first {
			p.wantNothing()
			p.send(write(1, 0, nil).ofVersion(c.version, c.version))
		}
		p.want(send(1, nil).ofVersion(c.version, c.version))
		p.advance(time.Hour)
		p.wantNothing()
	}
}

// An Initiator of any dialect nudges a silent peer, in the version and with the markers of
// the connection.
//
// Proves N06.
func TestNudgeVersion0(t *testing.T) {
	p := initiator(t, version0, func(s *setup) { s.Nudge = time.Second })
	p.post(work(1, OpSend))
	p.want(send(1, nil).ofVersion(0, 0))
	p.advance(time.Second)
	p.want(write(rtrSTag, 0, nil).ofVersion(0, 0))
}

// A Responder that got our Rtr frame may send first: nothing is odd about it.
//
// Proves T03.
func TestRtrResponderFirst(t *testing.T) {
	p := initiator(t, func(s *setup) { s.Dialect, s.StrictRTR = mpa.DialectRtr, true })
	p.receive(1)
	p.send(send(1, nil))
	p.completion(success(1, OpReceive, 0))
	p.wantState(RTS)
	if odd := p.Machine.Stats().Odd; odd != (Oddities{}) {
		t.Errorf("%+v", odd)
	}
}

// The codes of a failed establishment reach the consumer as the peer sent them, on
// connections of either version.
//
// Proves E05, E10, E11.
func TestEstablishmentTerminates(t *testing.T) {
	for own, change := range []func(*setup){version0, func(*setup) {}} {
		for _, code := range []rdmap.Code{rdmap.CodeMPALocalCatastrophic, rdmap.CodeMPAInsufficientIRD,
			rdmap.CodeMPANoMatchingRTR} {
			p := responder(t, change)
			p.receive(1)
			p.send(terminate(code).ofVersion(uint8(own), uint8(own)))
			p.wantEnd(Terminate, Finish)
			p.wantCause(code, true)
			p.completion(flushed(1, OpReceive))
		}
		for _, code := range []mpa.Code{mpa.CodeLocalCatastrophic, mpa.CodeInsufficientIRD, mpa.CodeNoMatchingRTR} {
			p := initiator(t, change, func(s *setup) { s.TerminateCode = code })
			p.wantTerminate(terminate(rdmap.CodeOfMPA(code)).ofVersion(uint8(own), uint8(own)))
			p.wantCause(rdmap.CodeOfMPA(code), false)
		}
	}
}

// revisions has the startup frames of the two sides be of these.
func revisions(ours, peer uint8) func(*setup) {
	return func(s *setup) { s.Revision, s.PeerRevision = ours, peer }
}

// A peer that leaves before its first FPDU, on an answer of another revision than its
// own, has not ended the connection as if nothing were amiss.
//
// Proves N03.
func TestDeserted(t *testing.T) {
	p := responder(t, version0, revisions(0, 1))
	p.receive(1)
	p.fin()
	p.wantNothing()
	p.wantState(Error)
	p.wantLLP(Drop)
	p.wantNotices(NoticeConnectionLost)
	p.completion(flushed(1, OpReceive))
	const want = "the peer closed the connection before its first FPDU: connection lost: its startup frame was of revision 1 and ours of revision 0, " +
		"with DDP and RDMAP version 0, which a non-permissive IETF RNIC does not have"
	if err := p.Machine.Cause(); !errors.Is(err, ErrLost) || err.Error() != want {
		t.Errorf("got %v", err)
	}

	p = responder(t, version0, revisions(0, 1)) // with an FPDU it is an orderly end
	p.send(write(1, 0, nil).ofVersion(0, 0))
	p.fin()
	p.wantState(Idle)
	if p.Machine.Cause() != ErrPeerClosed {
		t.Error(p.Machine.Cause())
	}

	p = responder(t, version0) // as with equal revisions
	p.fin()
	p.wantState(Idle)
	if p.Machine.Cause() != ErrPeerClosed {
		t.Error(p.Machine.Cause())
	}

	p = responder(t, version0, revisions(0, 1))
	p.Machine.Failed(*p.now, errReset)
	p.collectOutputs()
	p.wantLLP(Reset)
	if err := p.Machine.Cause(); !errors.Is(err, ErrLost) || !errors.Is(err, errReset) ||
		err.Error() == errReset.Error() {
		t.Errorf("got %v", err)
	}
}
