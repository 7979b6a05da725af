package iwarp_test

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestClose closes a connection in order while its consumer has work posted: all
// of it is carried out, and the peer is told of an orderly end.
//
// Proves Q15, D08, R08, S05.
func TestClose(t *testing.T) {
	t.Parallel()
	ini, res := connect(t)
	const n = 20
	src, dst := ini.filled(1<<20, 3, 0), res.mr(1<<20, iwarp.RemoteWrite)
	for i := range n {
		ini.post(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, 1<<20)}, Remote: dst.Remote(0)})
	}
	must(t, ini.Close())
	for i := range n {
		ini.wantSent(iwarp.OpWrite, uint64(i), iwarp.StatusSuccess)
	}
	if err := res.wantEnd(); err != nil {
		t.Errorf("the peer: %v", err)
	}
	same(t, "Write", dst, src)
	res.wantEvent(iwarp.EventHalfClosed)
	res.wantEvent(iwarp.EventCloseComplete)
	if ini.State() != iwarp.StateClosed || ini.wantEvent(iwarp.EventCloseComplete).QP != ini.QP {
		t.Errorf("the closer: %v", ini.Err())
	}
	if err := ini.PostSend(&iwarp.SendWR{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a Send after Close: %v", err)
	}
}

// TestHalfClose closes one direction: the other goes on until its side closes too.
//
// Proves D33, Q15, R08.
func TestHalfClose(t *testing.T) {
	ini, res := setup{accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.connect(t)
	dst := ini.mr(64, iwarp.LocalWrite|iwarp.RemoteWrite)
	for i := range 3 {
		ini.postRecv(uint64(i), dst.Slice(0, 8))
	}
	must(t, ini.CloseWrite())
	if err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a Send after CloseWrite: %v", err)
	}
	res.wantEvent(iwarp.EventHalfClosed)
	src := res.filled(64, 1, 0)
	for i := range 3 {
		if _, err := res.Write(within(t), src.Slice(0, 64), dst.Remote(0)); err != nil {
			t.Fatal(err)
		}
		sends(res, 1)
		ini.wantReceived(uint64(i), iwarp.StatusSuccess)
	}
	if string(dst.Bytes()[8:]) != string(src.Bytes()[8:]) {
		t.Error("the octets differ")
	}
	should(t, res.Close())
	should(t, ini.wantEnd())
}

// TestAfterLinger sends to a peer that has closed its half when our own has ended by itself: the error names what keeps that open, but not
// where the consumer has ended it.
func TestAfterLinger(t *testing.T) {
	for _, asked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := setup{pipe: true}.connect(t)
			synctest.Wait()
			must(t, ini.CloseWrite())
			res.wantEvent(iwarp.EventHalfClosed)
			if asked {
				must(t, res.CloseWrite())
			}
			<-res.Done()
			err := res.PostSend(&iwarp.SendWR{})
			if !errors.Is(err, iwarp.ErrPeerClosed) || contains(err, "QPConfig.HalfClose keeps it open") == asked || contains(err, "Modify(StateIdle)") != asked {
				t.Errorf("CloseWrite asked for: %t: %v", asked, err)
			}
			finish(t, ini, res)
		})
	}
}

// TestHalfCloseQuiet closes one direction of a connection over which nothing else passes: the peer learns
// of it at once.
func TestHalfCloseQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.connect(t)
		synctest.Wait()
		began := time.Now()
		must(t, ini.CloseWrite())
		res.wantEvent(iwarp.EventHalfClosed)
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		finish(t, ini, res)
	})
}

// TestWhileClosing uses a QP while its Close waits for the peer: it is told that the QP is being closed, as
// nobody knows yet how that ends, and after a second Close too.
func TestWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, Dialer: iwarp.Dialer{QP: iwarp.QPConfig{Linger: time.Minute}},
			accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.connect(t)
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(func() { should(t, ini.Close()) })
			synctest.Wait()
			for _, err := range []error{ini.PostSend(&iwarp.SendWR{}), ini.PostRecv(&iwarp.RecvWR{}), ini.CloseWrite()} {
				if !errors.Is(err, net.ErrClosed) || !contains(err, "the QP is being closed") || contains(err, "in order") {
					t.Errorf("while Close waits: %v", err)
				}
			}
		}
		should(t, res.Close())
		closing.Wait()
	})
}

// TestPeerCloses has a peer send its FIN after whole messages, and in the middle
// of one: an orderly end and a loss are told apart.
//
// Proves D08, R08, Q15.
func TestPeerCloses(t *testing.T) {
	t.Parallel()
	for _, orderly := range []bool{true, false} {
		res, p := respondToPeer(t, iwarp.QPConfig{})
		res.postRecv(1, res.mr(64, iwarp.LocalWrite).Slice(0, 64))
		octets := p.message(rdmap.OpSend, 1, []byte("last"))
		if orderly {
			p.send(octets)
		} else {
			p.send(octets[:len(octets)-1])
		}
		_ = p.link.CloseWrite()
		err := res.wantEnd()
		var told *iwarp.TerminateError
		switch {
		case orderly && err != nil:
			t.Error(err)
		case !orderly && (!errors.As(err, &told) || told.Code != rdmap.CodeMPAConnectionLost || !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, net.ErrClosed)):
			t.Errorf("cut off: %v", err)
		case !orderly:
			p.wantTerminate(rdmap.CodeMPAConnectionLost)
		}
		status := map[bool]iwarp.Status{true: iwarp.StatusSuccess, false: iwarp.StatusFlushed}[orderly]
		res.wantReceived(1, status)
		if kind := map[bool]iwarp.EventKind{true: iwarp.EventCloseComplete, false: iwarp.EventTerminateSent}[orderly]; res.wantEvent(kind).QP != res.QP {
			t.Error("event of another QP")
		}
	}
}

// respondToPeer is a Responder of revision 2 whose Initiator the test plays.
func respondToPeer(t testing.TB, cfg iwarp.QPConfig) (*end, *peer) {
	t.Helper()
	res := newEnd(t, iwarp.RNICConfig{})
	ln := listen(t, iwarp.ListenConfig{PD: res.pd})
	p := dialPeer(t, ln.Addr())
	started := res.takes(ln, iwarp.AcceptConfig{QP: cfg})
	p.start(2)
	must(t, <-started)
	until(t, func() bool { return res.Stats().ReceivedFPDUs > 0 }, "the RTR indication")
	return res, p
}

// TestBadClose closes without draining while a Read waits for its response.
func TestBadClose(t *testing.T) {
	ini, p := initiateToPeer(t)
	sink := ini.mr(8, iwarp.LocalWrite)
	ini.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)}, Remote: iwarp.Remote{STag: 5}})
	p.want(rdmap.OpWrite) // RTR
	p.want(rdmap.OpReadRequest)
	must(t, ini.Modify(iwarp.StateClosing))
	if err := ini.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("ended with %v", err)
	}
	ini.wantEvent(iwarp.EventBadClose)
	ini.wantSent(iwarp.OpRead, 1, iwarp.StatusFlushed)
	p.wantClosed()
}

// TestCloseTimeout has a peer that does not play its part in a close.
func TestCloseTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, req := respondOverPipe(t.Context(), t, iwarp.ListenConfig{}, func(p *peer) { p.start(2) })
		qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: 3 * time.Second}})
		must(t, err)
		synctest.Wait()
		began := time.Now()
		err = qp.Close()
		var n net.Error
		if !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &n) || !n.Timeout() {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestCloseStuck has a peer stop reading while work is queued, and keep on sending
// messages that are none: Close gives up when nothing of the work has moved for
// CloseTimeout, and the work is flushed.
func TestCloseStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, req := respondOverPipe(t.Context(), t, iwarp.ListenConfig{}, func(p *peer) { p.start(2) })
		res := &end{t: t}
		var err error
		res.QP, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: 3 * time.Second}})
		must(t, err)
		synctest.Wait()
		const writes = 4
		for i := range writes {
			res.post(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpWrite, Remote: iwarp.Remote{STag: 5}})
		}
		began := time.Now()
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() { // it has nothing to say, once a second, for as long as it can
			for err := error(nil); err == nil; _, err = p.conn.Write(p.write(1, 0, nil)) {
				time.Sleep(time.Second)
			}
		})
		err = res.Close()
		if took := time.Since(began); !errors.Is(err, iwarp.ErrConnectionLost) || took != 3*time.Second {
			t.Errorf("Close after %v: %v", took, err)
		}
		for i := range writes {
			if wc := next(t, res.SendCQ()); wc.ID != uint64(i) {
				t.Errorf("completed %+v", wc)
			}
		}
	})
}

// TestAbort resets a connection: all work is flushed when it returns, on the other
// side as well when it learns of it.
func TestAbort(t *testing.T) {
	ini, res := connect(t)
	res.postRecv(1)
	ini.postRecv(2)
	should(t, ini.Abort())
	var wc [1]iwarp.WC
	if ini.RecvCQ().Poll(wc[:]) != 1 || wc[0].Status != iwarp.StatusFlushed || wc[0].ID != 2 {
		t.Errorf("completed %+v", wc[0])
	}
	if err := ini.Err(); !errors.Is(err, net.ErrClosed) || err.Error() != "iwarp: aborted by the consumer" {
		t.Errorf("ended with %v", err)
	}
	if err := ini.Close(); err != nil {
		t.Errorf("Close after Abort: %v", err)
	}
	if err := res.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the peer: %v", err)
	}
	res.wantReceived(1, iwarp.StatusFlushed)
}

// TestCloseUnconnected releases QPs that never had a connection.
func TestCloseUnconnected(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	for _, end := range []func(*iwarp.QP) error{(*iwarp.QP).Close, (*iwarp.QP).Abort} {
		qp, err := pd.CreateQP(iwarp.QPConfig{})
		must(t, err)
		should(t, qp.PostRecv(&iwarp.RecvWR{ID: 1}))
		should(t, qp.PostSend(&iwarp.SendWR{ID: 2}))
		should(t, end(qp))
		wait(t, qp.Done(), "Done")
		var wc [4]iwarp.WC
		if n := qp.RecvCQ().Poll(wc[:]); n != 2 || wc[0].Status != iwarp.StatusFlushed || wc[1].Status != iwarp.StatusFlushed {
			t.Errorf("%d completions: %+v", n, wc)
		}
		if err := qp.SendCQ().Wait(within(t)); !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("Wait for more: %v", err)
		}
		if err := qp.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("a receive after the end: %v", err)
		}
		if qp.LocalAddr() != nil || qp.RemoteAddr() != nil {
			t.Error("an address without a connection")
		}
		should(t, qp.Close())
	}
	if s := rnic.Stats(); s.QPs != 0 || s.CQs != 0 || s.WorkRequests != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// TestCloseBothAtOnce closes from both sides, many times over.
func TestCloseBothAtOnce(t *testing.T) {
	for range 20 {
		ini, res := connect(t)
		finish(t, ini, res)
		if ini.State() != iwarp.StateClosed || res.State() != iwarp.StateClosed {
			t.Fatalf("%v, %v", ini.Err(), res.Err())
		}
	}
}
