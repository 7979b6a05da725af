package endings

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestClose closes a connection in order while its consumer has work posted: all
// of it is carried out, and the peer is told of an orderly end.
//
// Proves Q15, D08, R08, S05.
func TestClose(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	const n = 20
	src, dst := ini.Filled(1<<20, 3, 0), res.MR(1<<20, iwarp.RemoteWrite)
	for i := range n {
		ini.MustPost(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpWrite,
			SGL: []iwarp.SGE{src.Slice(0, 1<<20)}, Remote: dst.Remote(0)})
	}
	rig.Must(t, ini.Close())
	for i := range n {
		ini.WantSent(iwarp.OpWrite, uint64(i), iwarp.StatusSuccess)
	}
	if err := res.WantEnd(); err != nil {
		t.Errorf("the peer: %v", err)
	}
	rig.Same(t, "Write", dst, src)
	res.WantEvent(iwarp.EventHalfClosed)
	res.WantEvent(iwarp.EventCloseComplete)
	if ini.State() != iwarp.StateClosed || ini.WantEvent(iwarp.EventCloseComplete).QP != ini.QP {
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
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.Connect(t)
	dst := ini.MR(64, iwarp.LocalWrite|iwarp.RemoteWrite)
	for i := range 3 {
		ini.MustPostRecv(uint64(i), dst.Slice(0, 8))
	}
	rig.Must(t, ini.CloseWrite())
	if err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a Send after CloseWrite: %v", err)
	}
	res.WantEvent(iwarp.EventHalfClosed)
	src := res.Filled(64, 1, 0)
	for i := range 3 {
		if _, err := res.Write(rig.Within(t), src.Slice(0, 64), dst.Remote(0)); err != nil {
			t.Fatal(err)
		}
		rig.PostSmall(res, 1)
		ini.WantReceived(uint64(i), iwarp.StatusSuccess)
	}
	if string(dst.Bytes()[8:]) != string(src.Bytes()[8:]) {
		t.Error("the bytes differ")
	}
	rig.Should(t, res.Close())
	rig.Should(t, ini.WantEnd())
}

// TestAfterLinger sends to a peer that has closed its half when our own has ended by itself: the error names what keeps
// that open, but not where the consumer has ended it.
func TestAfterLinger(t *testing.T) {
	for _, asked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := rig.Setup{Pipe: true}
			if asked {
				s.Accept.QP.Linger = time.Second // or our half may have ended before CloseWrite
			}
			ini, res := s.Connect(t)
			synctest.Wait()
			rig.Must(t, ini.CloseWrite())
			res.WantEvent(iwarp.EventHalfClosed)
			if asked {
				rig.Must(t, res.CloseWrite())
			}
			<-res.Done()
			err := res.PostSend(&iwarp.SendWR{})
			if !errors.Is(err, iwarp.ErrPeerClosed) || rig.Contains(err, "QPConfig.HalfClose keeps it open") == asked ||
				rig.Contains(err, "Modify(StateIdle)") != asked {
				t.Errorf("CloseWrite asked for: %t: %v", asked, err)
			}
			rig.Finish(t, ini, res)
		})
	}
}

// TestHalfCloseQuiet closes one direction of a connection over which nothing else passes: the peer learns
// of it at once.
func TestHalfCloseQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.Connect(t)
		synctest.Wait()
		began := time.Now()
		rig.Must(t, ini.CloseWrite())
		res.WantEvent(iwarp.EventHalfClosed)
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		rig.Finish(t, ini, res)
	})
}

// TestWhileClosing uses a QP while its Close waits for the peer: it is told that the QP is being closed, as
// nobody knows yet how that ends, and after a second Close too.
func TestWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true, Dialer: iwarp.Dialer{QP: iwarp.QPConfig{Linger: time.Minute}},
			Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}}.Connect(t)
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(func() { rig.Should(t, ini.Close()) })
			synctest.Wait()
			for _, err := range []error{ini.PostSend(&iwarp.SendWR{}),
				ini.PostRecv(&iwarp.RecvWR{}), ini.CloseWrite()} {
				if !errors.Is(err, net.ErrClosed) || !rig.Contains(err, "the QP is being closed") ||
					rig.Contains(err, "in order") {
					t.Errorf("while Close waits: %v", err)
				}
			}
		}
		rig.Should(t, res.Close())
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
		res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
		res.MustPostRecv(1, res.MR(64, iwarp.LocalWrite).Slice(0, 64))
		data := p.Message(rdmap.OpSend, 1, []byte("last"))
		if orderly {
			p.Send(data)
		} else {
			p.Send(data[:len(data)-1])
		}
		_ = p.Link.CloseWrite()
		err := res.WantEnd()
		var told *iwarp.TerminateError
		switch {
		case orderly && err != nil:
			t.Error(err)
		case !orderly && (!errors.As(err, &told) || told.Code != rdmap.CodeMPAConnectionLost ||
			!errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, net.ErrClosed)):
			t.Errorf("cut off: %v", err)
		case !orderly:
			p.WantTerminate(rdmap.CodeMPAConnectionLost)
		}
		status := map[bool]iwarp.Status{true: iwarp.StatusSuccess, false: iwarp.StatusFlushed}[orderly]
		res.WantReceived(1, status)
		if kind := map[bool]iwarp.EventKind{true: iwarp.EventCloseComplete,
			false: iwarp.EventTerminateSent}[orderly]; res.WantEvent(kind).QP != res.QP {
			t.Error("event of another QP")
		}
	}
}

// TestBadClose closes without draining while a Read waits for its response.
func TestBadClose(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	sink := ini.MR(8, iwarp.LocalWrite)
	ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)},
		Remote: iwarp.Remote{STag: 5}})
	p.Want(rdmap.OpWrite) // RTR
	p.Want(rdmap.OpReadRequest)
	rig.Must(t, ini.Modify(iwarp.StateClosing))
	if err := ini.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("ended with %v", err)
	}
	ini.WantEvent(iwarp.EventBadClose)
	ini.WantSent(iwarp.OpRead, 1, iwarp.StatusFlushed)
	p.WantClosed()
}

// TestCloseTimeout has a peer that does not play its part in a close.
func TestCloseTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, req := rig.RespondOverPipe(t.Context(), t, iwarp.ListenConfig{}, func(p *rig.Peer) { p.Start(2) })
		qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: 3 * time.Second}})
		rig.Must(t, err)
		synctest.Wait()
		began := time.Now()
		err = qp.Close()
		var n net.Error
		if !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, os.ErrDeadlineExceeded) ||
			!errors.As(err, &n) || !n.Timeout() {
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
		p, req := rig.RespondOverPipe(t.Context(), t, iwarp.ListenConfig{}, func(p *rig.Peer) { p.Start(2) })
		res := &rig.End{T: t}
		var err error
		res.QP, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: 3 * time.Second}})
		rig.Must(t, err)
		synctest.Wait()
		const writes = 4
		for i := range writes {
			res.MustPost(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpWrite, Remote: iwarp.Remote{STag: 5}})
		}
		began := time.Now()
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() { // it has nothing to say, once a second, for as long as it can
			for err := error(nil); err == nil; _, err = p.Conn.Write(p.Write(1, 0, nil)) {
				time.Sleep(time.Second)
			}
		})
		err = res.Close()
		if took := time.Since(began); !errors.Is(err, iwarp.ErrConnectionLost) || took != 3*time.Second {
			t.Errorf("Close after %v: %v", took, err)
		}
		for i := range writes {
			if wc := rig.Next(t, res.SendCQ()); wc.ID != uint64(i) {
				t.Errorf("completed %+v", wc)
			}
		}
	})
}

// TestAbort resets a connection: all work is flushed when it returns, on the other
// side as well when it learns of it.
func TestAbort(t *testing.T) {
	ini, res := rig.Connect(t)
	res.MustPostRecv(1)
	ini.MustPostRecv(2)
	rig.Should(t, ini.Abort())
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
	if err := res.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the peer: %v", err)
	}
	res.WantReceived(1, iwarp.StatusFlushed)
}

// TestCloseUnconnected releases QPs that never had a connection.
func TestCloseUnconnected(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	for _, end := range []func(*iwarp.QP) error{(*iwarp.QP).Close, (*iwarp.QP).Abort} {
		qp, err := pd.CreateQP(iwarp.QPConfig{})
		rig.Must(t, err)
		rig.Should(t, qp.PostRecv(&iwarp.RecvWR{ID: 1}))
		rig.Should(t, qp.PostSend(&iwarp.SendWR{ID: 2}))
		rig.Should(t, end(qp))
		rig.Wait(t, qp.Done(), "Done")
		var wc [4]iwarp.WC
		if n := qp.RecvCQ().Poll(wc[:]); n != 2 || wc[0].Status != iwarp.StatusFlushed ||
			wc[1].Status != iwarp.StatusFlushed {
			t.Errorf("%d completions: %+v", n, wc)
		}
		if err := qp.SendCQ().Wait(rig.Within(t)); !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("Wait for more: %v", err)
		}
		if err := qp.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("a receive after the end: %v", err)
		}
		if qp.LocalAddr() != nil || qp.RemoteAddr() != nil {
			t.Error("an address without a connection")
		}
		rig.Should(t, qp.Close())
	}
	if s := rnic.Stats(); s.QPs != 0 || s.CQs != 0 || s.WorkRequests != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// TestCloseBothAtOnce closes from both sides, many times over.
func TestCloseBothAtOnce(t *testing.T) {
	for range 20 {
		ini, res := rig.Connect(t)
		rig.Finish(t, ini, res)
		if ini.State() != iwarp.StateClosed || res.State() != iwarp.StateClosed {
			t.Fatalf("%v, %v", ini.Err(), res.Err())
		}
	}
}
