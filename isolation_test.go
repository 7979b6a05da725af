package iwarp_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
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
		do    func(p *rig.Peer, mr *iwarp.MR)
		code  rdmap.Code // of the Terminate sent, or 0 for a lost connection
		event iwarp.EventKind
	}{
		{"an STag guessed", func(p *rig.Peer, mr *iwarp.MR) { p.Send(p.Write(mr.STag()+1, 0, []byte("x"))) },
			rdmap.CodeDDPInvalidSTag, iwarp.EventTerminateSent},
		{"one byte too far", func(p *rig.Peer, mr *iwarp.MR) { p.Send(p.Write(mr.STag(), base+own, []byte("x"))) },
			rdmap.CodeDDPBaseOrBounds, iwarp.EventTerminateSent},
		{"one byte too early", func(p *rig.Peer, mr *iwarp.MR) { p.Send(p.Write(mr.STag(), base-1, []byte("x"))) },
			rdmap.CodeDDPBaseOrBounds, iwarp.EventTerminateSent},
		{"a TO that wraps", func(p *rig.Peer, mr *iwarp.MR) { p.Send(p.Write(mr.STag(), ^uint64(0), []byte("xy"))) },
			rdmap.CodeDDPTOWrap, iwarp.EventTerminateSent},
		{"a Read of revoked memory", func(p *rig.Peer, mr *iwarp.MR) {
			stag := mr.STag()
			rig.Should(p.T, mr.Deregister())
			p.Send(p.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 1, Size: 4, SrcSTag: stag}))
		}, rdmap.CodeInvalidSTag, iwarp.EventTerminateSent},
		{"no receive posted", func(p *rig.Peer, _ *iwarp.MR) { p.Send(p.Message(rdmap.OpSend, 1, nil)) },
			rdmap.CodeDDPInvalidMSNNoBuffer, iwarp.EventTerminateSent},
		{"a bad CRC", func(p *rig.Peer, mr *iwarp.MR) {
			b := p.Write(mr.STag(), base, []byte("x"))
			b[len(b)-1] ^= 1
			p.Send(b)
		}, rdmap.CodeMPACRC, iwarp.EventTerminateSent},
		{"a reset", func(p *rig.Peer, _ *iwarp.MR) { _ = p.Link.Reset() }, 0, iwarp.EventConnectionLost},
		{"the end in the middle of an FPDU", func(p *rig.Peer, mr *iwarp.MR) {
			p.Send(p.Write(mr.STag(), base, []byte("cut off"))[:9])
			_ = p.Link.CloseWrite()
		}, rdmap.CodeMPAConnectionLost, iwarp.EventTerminateSent},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad, p := rig.RespondToPeer(t, iwarp.QPConfig{})
			good, other := rig.Setup{Accept: iwarp.AcceptConfig{PD: bad.PD,
				QP: iwarp.QPConfig{SendCQ: rig.NewCQ(t, bad.RNIC, 256)}}}.Connect(t)
			mr, err := bad.PD.RegisterOptions(make([]byte, own),
				iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteRead, Base: base})
			rig.Must(t, err)
			c.do(p, mr)
			if c.code != 0 {
				p.WantTerminate(c.code)
				p.WantClosed()
				p.Conn.Close()
			}
			checkEnd(t, bad, c.code, c.event)
			rig.Works(t, good, other)
			rig.Finish(t, good, other)
		})
	}
}

// checkEnd checks the error and the event of a connection that has ended.
func checkEnd(t *testing.T, e *rig.End, code rdmap.Code, kind iwarp.EventKind) {
	t.Helper()
	err := e.WantEnd()
	if code == 0 {
		if !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("ended with %v", err)
		}
	} else if term := (*iwarp.TerminateError)(nil); !errors.As(err, &term) || term.Code != code || term.Remote ||
		!errors.Is(err, net.ErrClosed) {
		t.Errorf("ended with %v, want %v", err, code)
	}
	ev := e.WantEvent(kind)
	if ev.QP != e.QP || ev.Err == nil || ev.Err.Error() != err.Error() {
		t.Errorf("event %v", ev)
	}
	if code != 0 && e.RNIC.Stats().TerminatesSent[code] != 1 {
		t.Errorf("counted %v", e.RNIC.Stats().TerminatesSent)
	}
}

// TestPeerVanishes has the peer disappear in the middle of a Read: all that is
// outstanding is flushed, and the error says what happened.
//
// Proves D08, R08.
func TestPeerVanishes(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	sink := ini.MR(1000, iwarp.LocalWrite)
	ini.MustPostRecv(1, sink.Slice(0, 10))
	ini.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 1000)},
		Remote: iwarp.Remote{STag: 5}})
	ini.MustPost(&iwarp.SendWR{ID: 3, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 1000)},
		Remote: iwarp.Remote{STag: 5}})
	call := rig.DialInBackground(t, func() error {
		_, err := ini.Read(rig.Within(t), sink.Slice(0, 8), iwarp.Remote{STag: 5})
		return err
	})
	p.Want(rdmap.OpWrite) // RTR
	s := p.Want(rdmap.OpReadRequest)
	req, _ := rdmap.ParseReadRequest(s.Payload)
	h := rdmap.OpReadResponse.Header(1)
	h.STag, h.TO = req.SinkSTag, req.SinkTO
	p.Send(p.FPDU(h, make([]byte, 500))) // the first half
	rig.Until(t, func() bool { return ini.Stats().ReceivedFPDUs > 0 && ini.Query().Sends == 3 }, "the response")
	_ = p.Link.Reset()

	err := ini.WantEnd()
	if !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("ended with %v", err)
	}
	for range 3 {
		wc := rig.Next(t, ini.SendCQ())
		if wc.Status != iwarp.StatusFlushed || wc.Op != map[uint64]iwarp.Op{1: iwarp.OpRecv, 2: iwarp.OpRead,
			3: iwarp.OpRead}[wc.ID] {
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

// TestOwnDomains gives connections that share nothing, and ask for nothing, a
// Protection Domain each: what one peer may reach another may not.
//
// Proves Z07, Z02.
func TestOwnDomains(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	var qps [2]*iwarp.QP
	var peers [2]*rig.Peer
	for i := range qps {
		peers[i] = rig.DialPeer(t, ln.Addr())
		accepted := rig.DialInBackground(t, func() error {
			req, err := ln.Accept(rig.Within(t))
			if err == nil {
				qps[i], err = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
			}
			return err
		})
		peers[i].Start(2)
		rig.Must(t, <-accepted)
	}
	if qps[0].PD() == qps[1].PD() {
		t.Fatal("two connections share a domain that nobody asked for")
	}
	mr, err := qps[0].PD().Register(make([]byte, 8), iwarp.RemoteWrite)
	rig.Must(t, err)
	peers[1].Send(peers[1].Write(mr.STag(), 0, []byte("stolen")))
	peers[1].WantTerminate(rdmap.CodeDDPSTagNotAssociated)
	peers[0].Send(peers[0].Write(mr.STag(), 0, []byte("ok")))
	rig.Until(t, func() bool { return qps[0].Stats().Received[rdmap.OpWrite].Bytes == 2 }, "the Write")
	if string(mr.Bytes()) != "ok\x00\x00\x00\x00\x00\x00" || qps[0].State() != iwarp.StateRTS {
		t.Errorf("the bytes are %q, the QP in state %v", mr.Bytes(), qps[0].State())
	}
	for _, qp := range qps {
		_ = qp.Abort()
	}
	rig.Should(t, mr.Deregister())
	if s := ln.RNIC().Stats(); s.PDs != 0 || s.QPs != 0 || s.MRs != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// A keeping is a TLS listener that keeps what it has accepted.
type keeping struct {
	net.Listener
	accepted chan *tls.Conn
}

func (k keeping) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.accepted <- c.(*tls.Conn)
	}
	return c, err
}

// TestChannelBinding: two programs over TLS have the same keying material of their connection, to bind to it what they
// authenticate in their own messages.
func TestChannelBinding(t *testing.T) {
	var s rig.Setup
	server := new(rig.Transport).Encrypt(t, &s)
	var client *tls.Conn
	encrypt := s.Wrap
	s.Wrap = func(c net.Conn) (net.Conn, error) {
		c, err := encrypt(c)
		client, _ = c.(*tls.Conn)
		return c, err
	}
	k := keeping{tls.NewListener(rig.ListenTCP(t), server), make(chan *tls.Conn, 1)}
	ln := new(iwarp.ListenConfig).NewListener(k)
	t.Cleanup(func() { _ = ln.Close() })
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), &rig.End{T: t}
	accepted := res.Takes(ln, iwarp.AcceptConfig{})
	rig.Must(t, <-ini.Dials(iwarp.Dialer{PD: ini.PD, Wrap: s.Wrap}, ln))
	rig.Must(t, <-accepted)
	binding := func(c *tls.Conn) []byte {
		state := c.ConnectionState()
		b, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
		rig.Must(t, err)
		return b
	}
	if here, there := binding(client), binding(<-k.accepted); !bytes.Equal(here, there) {
		t.Errorf("% x, and % x at the server", here, there)
	}
	rig.Finish(t, ini, res)
}
