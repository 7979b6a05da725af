package iwarp_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestDelayedStartup starts MPA on a TCP connection that carried a stream of
// octets before, which ends with a last message of the Responder's.
//
// Proves Q14, Q13.
func TestDelayedStartup(t *testing.T) {
	const hello, last = "hello, do you speak iWARP?", "yes, go on"
	for _, revision := range []uint8{1, 2} {
		ln := listenTCP(t)
		responded := make(chan *end, 1)
		go func() {
			defer close(responded)
			res := newEnd(t, iwarp.RNICConfig{})
			c, err := ln.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			b := make([]byte, len(hello))
			if _, err := io.ReadFull(c, b); err != nil || string(b) != hello {
				t.Errorf("heard %q (%v)", b, err)
			}
			req, err := iwarp.Respond(within(t), c, []byte(last), iwarp.ListenConfig{PD: res.pd})
			if err == nil {
				res.QP, err = req.Accept(within(t), iwarp.AcceptConfig{})
			}
			if err != nil {
				t.Error(err)
				return
			}
			responded <- res
		}()
		c := dialTCP(t, ln.Addr().String())
		if _, err := io.WriteString(c, hello); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(last))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != last {
			t.Fatalf("heard %q (%v)", b, err)
		}
		ini := newEnd(t, iwarp.RNICConfig{})
		d := iwarp.Dialer{PD: ini.pd, MPA: mpa.Offer{Dialect: dialectOf(t, revision)}}
		qp, err := d.Initiate(within(t), c, nil)
		must(t, err)
		ini.QP = qp
		if res := <-responded; res != nil {
			works(t, ini, res)
			finish(t, ini, res)
		}
	}
}

// TestSwitchSplits sends the end of the streaming mode, the Request, and after
// the Reply the first two FPDUs in two pieces, cut at every octet: nothing is lost
// or misread at the switch.
//
// Proves Q14, Q13, R08.
func TestSwitchSplits(t *testing.T) {
	const hello = "bye, stream"
	first := append([]byte(hello), frame(request(2, 'p', 'd'))...)
	for cut := range len(first) + 1 {
		synctest.Test(t, func(t *testing.T) {
			a, b := newPipe(t)
			p := newPeer(t, a)
			p.meanwhile(func() { p.sendInTwo(first, cut) })
			streamed := make([]byte, len(hello))
			if _, err := io.ReadFull(b, streamed); err != nil || string(streamed) != hello {
				t.Fatalf("cut at %d: streamed %q (%v)", cut, streamed, err)
			}
			req, err := iwarp.Respond(t.Context(), b, nil, iwarp.ListenConfig{})
			if err != nil || string(req.PrivateData()) != "pd" {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			receiveSplit(t, p, req, cut)
		})
	}
}

// receiveSplit accepts the request and has the peer send an RTR and a Send that
// are cut in two.
func receiveSplit(t *testing.T, p *peer, req *iwarp.Request, cut int) {
	p.meanwhile(func() { p.wantFrame(mpa.KeyReply) })
	res := &end{t: t}
	qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{Prepare: func(qp *iwarp.QP) error {
		res.QP, res.pd = qp, qp.PD()
		res.postRecv(1, res.mr(64, iwarp.LocalWrite).Slice(0, 64))
		return nil
	}})
	must(t, err)
	synctest.Wait()
	octets := append(p.write(1, 0, nil), p.message(rdmap.OpSend, 1, []byte("first"))...)
	p.sendInTwo(octets, min(cut, len(octets)))
	if wc := res.wantReceived(1, iwarp.StatusSuccess); wc.Length != 5 {
		t.Errorf("cut at %d: %d octets", cut, wc.Length)
	}
	p.conn.Close()
	if err := res.wantEnd(); err != nil {
		t.Errorf("cut at %d: %v", cut, err)
	}
	_ = qp.Close()
}

// TestPipelined has a peer send FPDUs right after its Request, before it can
// know that it is accepted: where that is tolerated, not one is lost.
//
// Proves Q13.
func TestPipelined(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{TolerateEarly: true})
	p := dialPeer(t, ln.Addr())
	octets := append(frame(request(1)), p.message(rdmap.OpSend, 1, []byte("one"))...)
	p.send(append(octets, p.message(rdmap.OpSend, 2, []byte("two"))...))
	req, err := ln.Accept(within(t))
	must(t, err)
	res := newEnd(t, iwarp.RNICConfig{})
	if _, err := req.Accept(within(t), iwarp.AcceptConfig{PD: res.pd, Prepare: res.twoReceives}); err != nil {
		t.Fatal(err)
	}
	res.wantReceived(0, iwarp.StatusSuccess)
	res.wantReceived(1, iwarp.StatusSuccess)
}

// TestPipelinedReply is the same for an Initiator, whose peer breaks a rule by it.
//
// Proves Q13.
func TestPipelinedReply(t *testing.T) {
	ini := newEnd(t, iwarp.RNICConfig{})
	ln := listenTCP(t)
	d := iwarp.Dialer{PD: ini.pd, Prepare: ini.twoReceives}
	dialed := (&end{t: t}).dials(d, ln)
	p := acceptRequest(t, ln)
	octets := append(frame(reply(2)), p.message(rdmap.OpSend, 1, []byte("one"))...)
	p.send(append(octets, p.message(rdmap.OpSend, 2, []byte("two"))...))
	must(t, <-dialed)
	ini.wantReceived(0, iwarp.StatusSuccess)
	ini.wantReceived(1, iwarp.StatusSuccess)
}

// twoReceives is a Prepare.
func (e *end) twoReceives(qp *iwarp.QP) error {
	e.QP = qp
	mr, err := e.pd.Register(make([]byte, 128), iwarp.LocalWrite)
	for i := range 2 {
		if err == nil {
			err = qp.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{mr.Slice(64*i, 64)}})
		}
	}
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}
