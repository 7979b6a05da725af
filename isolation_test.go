package iwarp_test

import (
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestIsolation has one peer after the other break a rule, or vanish. Its
// connection ends, with the right words on both sides; another connection on the
// same RNIC, which shares whatever may be shared, does not notice.
//
// Proves Z02, Z08, Z25.
func TestIsolation(t *testing.T) {
	const base, own = 1 << 40, 100 // what the peer may reach
	for _, c := range []struct {
		name  string
		do    func(p *peer, mr *iwarp.MR)
		code  rdmap.Code // of the Terminate sent, or 0 for a lost connection
		event iwarp.EventKind
	}{
		{"an STag guessed", func(p *peer, mr *iwarp.MR) { p.send(p.write(mr.STag()+1, 0, []byte("x"))) }, rdmap.CodeDDPInvalidSTag, iwarp.EventTerminateSent},
		{"one octet too far", func(p *peer, mr *iwarp.MR) { p.send(p.write(mr.STag(), base+own, []byte("x"))) }, rdmap.CodeDDPBaseOrBounds, iwarp.EventTerminateSent},
		{"one octet too early", func(p *peer, mr *iwarp.MR) { p.send(p.write(mr.STag(), base-1, []byte("x"))) }, rdmap.CodeDDPBaseOrBounds, iwarp.EventTerminateSent},
		{"a TO that wraps", func(p *peer, mr *iwarp.MR) { p.send(p.write(mr.STag(), ^uint64(0), []byte("xy"))) }, rdmap.CodeDDPTOWrap, iwarp.EventTerminateSent},
		{"a Read of revoked memory", func(p *peer, mr *iwarp.MR) {
			stag := mr.STag()
			should(p.t, mr.Deregister())
			p.send(p.readRequest(1, rdmap.ReadRequest{SinkSTag: 1, Size: 4, SrcSTag: stag}))
		}, rdmap.CodeInvalidSTag, iwarp.EventTerminateSent},
		{"no receive posted", func(p *peer, _ *iwarp.MR) { p.send(p.message(rdmap.OpSend, 1, nil)) }, rdmap.CodeDDPInvalidMSNNoBuffer, iwarp.EventTerminateSent},
		{"a bad CRC", func(p *peer, mr *iwarp.MR) {
			b := p.write(mr.STag(), base, []byte("x"))
			b[len(b)-1] ^= 1
			p.send(b)
		}, rdmap.CodeMPACRC, iwarp.EventTerminateSent},
		{"a reset", func(p *peer, _ *iwarp.MR) { _ = p.link.Reset() }, 0, iwarp.EventConnectionLost},
		{"the end in the middle of an FPDU", func(p *peer, mr *iwarp.MR) {
			p.send(p.write(mr.STag(), base, []byte("cut off"))[:9])
			_ = p.link.CloseWrite()
		}, rdmap.CodeMPAConnectionLost, iwarp.EventTerminateSent},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad, p := respondToPeer(t, iwarp.QPConfig{})
			good, other := setup{accept: iwarp.AcceptConfig{PD: bad.pd, QP: iwarp.QPConfig{SendCQ: newCQ(t, bad.rnic, 256)}}}.connect(t)
			mr, err := bad.pd.RegisterOptions(make([]byte, own), iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteRead, Base: base})
			must(t, err)
			c.do(p, mr)
			if c.code != 0 {
				p.wantTerminate(c.code)
				p.wantClosed()
				p.conn.Close()
			}
			checkEnd(t, bad, c.code, c.event)
			works(t, good, other)
			finish(t, good, other)
		})
	}
}

// checkEnd checks the error and the event of a connection that has ended.
func checkEnd(t *testing.T, e *end, code rdmap.Code, kind iwarp.EventKind) {
	t.Helper()
	err := e.wantEnd()
	if code == 0 {
		if !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("ended with %v", err)
		}
	} else if term := (*iwarp.TerminateError)(nil); !errors.As(err, &term) || term.Code != code || term.Remote || !errors.Is(err, net.ErrClosed) {
		t.Errorf("ended with %v, want %v", err, code)
	}
	ev := e.wantEvent(kind)
	if ev.QP != e.QP || ev.Err == nil || ev.Err.Error() != err.Error() {
		t.Errorf("event %v", ev)
	}
	if code != 0 && e.rnic.Stats().TerminatesSent[code] != 1 {
		t.Errorf("counted %v", e.rnic.Stats().TerminatesSent)
	}
}

// TestPeerVanishes has the peer disappear in the middle of a Read: all that is
// outstanding is flushed, and the error says what happened.
//
// Proves D08, R08.
func TestPeerVanishes(t *testing.T) {
	ini, p := initiateToPeer(t)
	sink := ini.mr(1000, iwarp.LocalWrite)
	ini.postRecv(1, sink.Slice(0, 10))
	ini.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 1000)}, Remote: iwarp.Remote{STag: 5}})
	ini.post(&iwarp.SendWR{ID: 3, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 1000)}, Remote: iwarp.Remote{STag: 5}})
	call := dialInBackground(t, func() error {
		_, err := ini.Read(within(t), sink.Slice(0, 8), iwarp.Remote{STag: 5})
		return err
	})
	p.want(rdmap.OpWrite) // RTR
	s := p.want(rdmap.OpReadRequest)
	req, _ := rdmap.ParseReadRequest(s.Payload)
	h := rdmap.OpReadResponse.Header(1)
	h.STag, h.TO = req.SinkSTag, req.SinkTO
	p.send(p.fpdu(h, make([]byte, 500))) // the first half
	until(t, func() bool { return ini.Stats().ReceivedFPDUs > 0 && ini.Query().Sends == 3 }, "the response")
	_ = p.link.Reset()

	err := ini.wantEnd()
	if !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("ended with %v", err)
	}
	for range 3 {
		wc := next(t, ini.SendCQ())
		if wc.Status != iwarp.StatusFlushed || wc.Op != map[uint64]iwarp.Op{1: iwarp.OpRecv, 2: iwarp.OpRead, 3: iwarp.OpRead}[wc.ID] {
			t.Errorf("completed %+v", wc)
		}
		if err := wc.Err(); !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("completion's error: %v", err)
		}
	}
	var wc *iwarp.WCError
	if err := <-call; !errors.As(err, &wc) || wc.Status != iwarp.StatusFlushed || !errors.Is(err, net.ErrClosed) {
		t.Errorf("the one-call form: %v", err)
	}
}

// initiateToPeer is an Initiator of revision 2 whose Responder the test plays.
func initiateToPeer(t testing.TB) (*end, *peer) {
	t.Helper()
	ini := newEnd(t, iwarp.RNICConfig{})
	ln := listenTCP(t)
	d := iwarp.Dialer{PD: ini.pd, QP: iwarp.QPConfig{Nudge: -1, CloseTimeout: soon}}
	dialed := ini.dials(d, ln)
	p := acceptRequest(t, ln)
	p.send(frame(reply(2)))
	must(t, <-dialed)
	return ini, p
}

// TestOwnDomains gives connections that share nothing, and ask for nothing, a
// Protection Domain each: what one peer may reach another may not.
//
// Proves Z07, Z02.
func TestOwnDomains(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{})
	var qps [2]*iwarp.QP
	var peers [2]*peer
	for i := range qps {
		peers[i] = dialPeer(t, ln.Addr())
		accepted := dialInBackground(t, func() error {
			req, err := ln.Accept(within(t))
			if err == nil {
				qps[i], err = req.Accept(within(t), iwarp.AcceptConfig{})
			}
			return err
		})
		peers[i].start(2)
		must(t, <-accepted)
	}
	if qps[0].PD() == qps[1].PD() {
		t.Fatal("two connections share a domain that nobody asked for")
	}
	mr, err := qps[0].PD().Register(make([]byte, 8), iwarp.RemoteWrite)
	must(t, err)
	peers[1].send(peers[1].write(mr.STag(), 0, []byte("stolen")))
	peers[1].wantTerminate(rdmap.CodeDDPSTagNotAssociated)
	peers[0].send(peers[0].write(mr.STag(), 0, []byte("ok")))
	until(t, func() bool { return qps[0].Stats().Received[rdmap.OpWrite].Octets == 2 }, "the Write")
	if string(mr.Bytes()) != "ok\x00\x00\x00\x00\x00\x00" || qps[0].State() != iwarp.StateRTS {
		t.Errorf("the octets are %q, the QP in state %v", mr.Bytes(), qps[0].State())
	}
	for _, qp := range qps {
		_ = qp.Abort()
	}
	should(t, mr.Deregister())
	if s := ln.RNIC().Stats(); s.PDs != 0 || s.QPs != 0 || s.MRs != 0 {
		t.Errorf("left over: %+v", s)
	}
}
