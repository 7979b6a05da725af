package iwarp_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/machine"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestCompletesWhileTheRestWaits has a peer read no further than the first of two Sends:
// that is complete, although the second one is under way for as long as it takes.
func TestCompletesWhileTheRestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := testrig.Pipe("near", "far")
		_, _ = near.SetWriteBuffer(1024), far.SetWriteBuffer(1024)
		t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
		ini := newEnd(t, iwarp.RNICConfig{})
		done := dialInBackground(t, func() (err error) {
			d := iwarp.Dialer{PD: ini.pd, QP: iwarp.QPConfig{Nudge: -1}}
			ini.QP, err = d.Initiate(t.Context(), near, nil)
			return err
		})
		p := newPeer(t, far)
		p.wantFrame(mpa.KeyRequest)
		p.send(frame(reply(2)))
		must(t, <-done)
		synctest.Wait() // the receiving goroutine has begun
		for id, n := range []int{64 << 10, 1 << 20} {
			ini.post(&iwarp.SendWR{ID: uint64(id), SGL: []iwarp.SGE{ini.mr(n, 0).Slice(0, n)}})
		}
		synctest.Wait()
		_, err := io.CopyN(io.Discard, far, 80<<10)
		must(t, err)
		synctest.Wait()
		var wc [2]iwarp.WC
		if n := ini.SendCQ().Poll(wc[:]); n != 1 || wc[0].ID != 0 || wc[0].Err() != nil {
			t.Errorf("%d completions: %v", n, wc[:n])
		}
		_ = ini.Abort()
	})
}

// TestCallsAreCounted counts the calls that receive and send: each of them moves something.
func TestCallsAreCounted(t *testing.T) {
	ini, res := connect(t)
	works(t, ini, res)
	for _, e := range []*end{ini, res} {
		s := e.Stats()
		if s.ReceiveCalls == 0 || s.ReceiveCalls > s.ReceivedStream || s.SendCalls == 0 || s.SendCalls > s.SentStream {
			t.Errorf("%d calls have received %d octets, and %d sent %d", s.ReceiveCalls, s.ReceivedStream, s.SendCalls, s.SentStream)
		}
	}
	finish(t, ini, res)
}

// TestDeadQPHoldsNoBuffer ends connections in the middle of FPDUs that are too long to be kept
// beside a pooled buffer: QPs that nobody has closed yet hold none.
func TestDeadQPHoldsNoBuffer(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	const n, limit = 40, 24 << 10 // octets for each: its RNIC, Listener and test take 16 KiB, a receive buffer 128 KiB
	part := make([]byte, 30000)   // one that is kept by itself is beyond the limit, too
	part[0] = 0xf0                // ULPDU_Length
	qps := make([]*end, 0, n)
	var before uint64
	for i := range n + 5 {
		res, p := respondToPeer(t, iwarp.QPConfig{})
		p.send(part)
		must(t, p.conn.Close())
		wait(t, res.Done(), "the end of the connection")
		if qps = append(qps, res); i == 4 {
			before, _ = machine.Held()
		}
	}
	var each int64
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		h, _ := machine.Held()
		if each = (int64(h) - int64(before)) / n; each < limit {
			return
		}
	}
	t.Errorf("each of %d dead QPs holds %d octets", len(qps), each)
}
