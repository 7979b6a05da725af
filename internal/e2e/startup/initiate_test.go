package startup

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestDelayedStartup starts MPA on a TCP connection that carried a stream of
// bytes before, which ends with a last message of the Responder's.
//
// Proves Q14, Q13.
func TestDelayedStartup(t *testing.T) {
	const hello, last = "hello, do you speak iWARP?", "yes, go on"
	for _, revision := range []uint8{1, 2} {
		ln := rig.ListenTCP(t)
		responded := make(chan *rig.End, 1)
		go func() {
			defer close(responded)
			res := rig.NewEnd(t, iwarp.RNICConfig{})
			c, err := ln.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			b := make([]byte, len(hello))
			if _, err := io.ReadFull(c, b); err != nil || string(b) != hello {
				t.Errorf("heard %q (%v)", b, err)
			}
			req, err := (&iwarp.ListenConfig{PD: res.PD}).Respond(rig.Within(t), c, []byte(last))
			if err == nil {
				res.QP, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
			}
			if err != nil {
				t.Error(err)
				return
			}
			responded <- res
		}()
		c := rig.DialTCP(t, ln.Addr().String())
		if _, err := io.WriteString(c, hello); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(last))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != last {
			t.Fatalf("heard %q (%v)", b, err)
		}
		ini := rig.NewEnd(t, iwarp.RNICConfig{})
		d := iwarp.Dialer{PD: ini.PD, MPA: mpa.Offer{Dialect: rig.DialectOf(t, revision)}}
		qp, err := d.Initiate(rig.Within(t), c, nil)
		rig.Must(t, err)
		ini.QP = qp
		if res := <-responded; res != nil {
			rig.Works(t, ini, res)
			rig.Finish(t, ini, res)
		}
	}
}

// TestSwitchSplits sends the end of the streaming mode, the Request, and after
// the Reply the first two FPDUs in two pieces, cut at every byte: nothing is lost
// or misread at the switch.
//
// Proves Q14, Q13, R08.
func TestSwitchSplits(t *testing.T) {
	const hello = "bye, stream"
	first := append([]byte(hello), rig.Frame(rig.Request(2, 'p', 'd'))...)
	for cut := range len(first) + 1 {
		synctest.Test(t, func(t *testing.T) {
			a, b := rig.NewPipe(t)
			p := rig.NewPeer(t, a)
			p.Meanwhile(func() { p.SendInTwo(first, cut) })
			streamed := make([]byte, len(hello))
			if _, err := io.ReadFull(b, streamed); err != nil || string(streamed) != hello {
				t.Fatalf("cut at %d: streamed %q (%v)", cut, streamed, err)
			}
			req, err := new(iwarp.ListenConfig).Respond(t.Context(), b, nil)
			if err != nil || string(req.PrivateData()) != "pd" {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			receiveSplit(t, p, req, cut)
		})
	}
}

// receiveSplit accepts the request and has the peer send an RTR and a Send that
// are cut in two.
func receiveSplit(t *testing.T, p *rig.Peer, req *iwarp.Request, cut int) {
	p.Meanwhile(func() { p.WantFrame(mpa.KeyReply) })
	res := &rig.End{T: t}
	qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{Prepare: func(qp *iwarp.QP) error {
		res.QP, res.PD = qp, qp.PD()
		res.MustPostRecv(1, res.MR(64, iwarp.LocalWrite).Slice(0, 64))
		return nil
	}})
	rig.Must(t, err)
	synctest.Wait()
	data := append(p.Write(1, 0, nil), p.Message(rdmap.OpSend, 1, []byte("first"))...)
	p.SendInTwo(data, min(cut, len(data)))
	if wc := res.WantReceived(1, iwarp.StatusSuccess); wc.Length != 5 {
		t.Errorf("cut at %d: %d bytes", cut, wc.Length)
	}
	p.Conn.Close()
	if err := res.WantEnd(); err != nil {
		t.Errorf("cut at %d: %v", cut, err)
	}
	_ = qp.Close()
}

// TestPipelined has a peer send FPDUs right after its Request, before it can
// know that it is accepted: where that is tolerated, not one is lost.
//
// Proves Q13.
func TestPipelined(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{TolerateEarly: true})
	p := rig.DialPeer(t, ln.Addr())
	data := append(rig.Frame(rig.Request(1)), p.Message(rdmap.OpSend, 1, []byte("one"))...)
	p.Send(append(data, p.Message(rdmap.OpSend, 2, []byte("two"))...))
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{PD: res.PD, Prepare: res.TwoReceives}); err != nil {
		t.Fatal(err)
	}
	res.WantReceived(0, iwarp.StatusSuccess)
	res.WantReceived(1, iwarp.StatusSuccess)
}

// TestPipelinedReply is the same for an Initiator, whose peer breaks a rule by it.
//
// Proves Q13.
func TestPipelinedReply(t *testing.T) {
	ini := rig.NewEnd(t, iwarp.RNICConfig{})
	ln := rig.ListenTCP(t)
	d := iwarp.Dialer{PD: ini.PD, Prepare: ini.TwoReceives}
	dialed := (&rig.End{T: t}).Dials(d, ln)
	p := rig.AcceptRequest(t, ln)
	data := append(rig.Frame(rig.Reply(2)), p.Message(rdmap.OpSend, 1, []byte("one"))...)
	p.Send(append(data, p.Message(rdmap.OpSend, 2, []byte("two"))...))
	rig.Must(t, <-dialed)
	ini.WantReceived(0, iwarp.StatusSuccess)
	ini.WantReceived(1, iwarp.StatusSuccess)
}
