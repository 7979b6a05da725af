package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
)

// TestBeginClose does not wait for the end, on a path of 75 ms: what was posted before, and what the peer has under way, arrives, and nothing
// is posted after.
func TestBeginClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, path: 75 * time.Millisecond}.connect(t)
		mine, theirs := ini.mr(8, iwarp.LocalWrite), res.mr(8, iwarp.LocalWrite)
		must(t, ini.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mine.Slice(0, 8)}}))
		must(t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{theirs.Slice(0, 8)}}))
		must(t, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{mine.Slice(0, 8)}}))
		must(t, res.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{theirs.Slice(0, 8)}}))

		began := time.Now()
		for range 2 {
			ini.BeginClose()
			if took := time.Since(began); took != 0 {
				t.Errorf("it took %v", took)
			}
			if err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}); !errors.Is(err, iwarp.ErrClosed) {
				t.Errorf("a Send after that: %v", err)
			}
		}
		for _, e := range []*end{ini, res} {
			wc, err := e.RecvCQ().Next(t.Context())
			must(t, err)
			should(t, wc.Err())
		}
		<-ini.Done()
		should(t, ini.Close())
		should(t, res.Close())
	})
}

// TestBeginCloseUnconnected begins nothing.
func TestBeginCloseUnconnected(t *testing.T) {
	ini, _ := connect(t)
	qp, err := ini.pd.CreateQP(iwarp.QPConfig{})
	must(t, err)
	qp.BeginClose()
	if qp.State() != iwarp.StateIdle {
		t.Errorf("state %v", qp.State())
	}
	must(t, qp.PostRecv(&iwarp.RecvWR{}))
	should(t, qp.Close())
}

// TestBeginCloseReuse leads a QP whose close was begun to another connection, as after any other end.
func TestBeginCloseReuse(t *testing.T) {
	t.Parallel()
	ini, res := connect(t)
	ini.BeginClose()
	<-ini.Done()
	should(t, res.Close())
	must(t, ini.Modify(iwarp.StateIdle))
	must(t, ini.PostRecv(&iwarp.RecvWR{}))
	ln := listen(t, iwarp.ListenConfig{})
	next := newEnd(t, iwarp.RNICConfig{})
	taken := next.takes(ln, iwarp.AcceptConfig{PD: next.pd})
	must(t, new(iwarp.Dialer).DialQP(within(t), ini.QP, "tcp", ln.Addr().String()))
	must(t, <-taken)
	must(t, ini.Send(within(t), iwarp.SGE{}))
	should(t, ini.CloseWrite())
}

// TestCreateWhileRNICCloses creates QPs while their RNIC is being closed: none is left, and the race detector finds nothing.
func TestCreateWhileRNICCloses(t *testing.T) {
	for range 300 {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pd := newPD(t, rnic)
		created := make(chan *iwarp.QP)
		go func() {
			qp, _ := pd.CreateQP(iwarp.QPConfig{}) // or the RNIC was closed before
			created <- qp
		}()
		should(t, rnic.Close())
		if <-created; rnic.Stats().QPs != 0 {
			t.Fatal("a QP is left")
		}
	}
}
