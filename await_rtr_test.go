package iwarp_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// awaiting accepts the Request of a peer whose RTR indication is awaited, on a QP with a receive, and returns when the answer is there.
func awaiting(t *testing.T, rev uint8) (*peer, *iwarp.QP, <-chan error) {
	t.Helper()
	rnic := newRNIC(t, iwarp.RNICConfig{})
	qp := create(t, newPD(t, rnic), iwarp.QPConfig{})
	must(t, qp.PostRecv(&iwarp.RecvWR{ID: 7}))
	p, req := askOverPipe(t.Context(), t, iwarp.ListenConfig{RNIC: rnic, RTRTimeout: time.Minute}, frame(request(rev)))
	accepted := dialInBackground(t, func() error { return req.AcceptQP(t.Context(), qp, iwarp.AcceptConfig{AwaitRTR: true}) })
	p.wantFrame(mpa.KeyReply)
	return p, qp, accepted
}

// TestAwaitRTR: AcceptQP waits for the RTR indication. Where the peer goes away without one, or takes too long, the QP keeps its receive.
func TestAwaitRTR(t *testing.T) {
	for name, comes := range map[string]func(p *peer){
		"leaves": func(p *peer) { _ = p.conn.Close() },
		"late":   func(*peer) { time.Sleep(time.Hour) },
		"sends":  func(p *peer) { p.send(p.write(1, 0, nil)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p, qp, accepted := awaiting(t, 2)
			synctest.Wait()
			select {
			case err := <-accepted:
				t.Fatalf("accepted before the peer has sent anything: %v", err)
			default:
			}
			comes(p)
			up, err := name == "sends", <-accepted
			if up && (err != nil || qp.State() != iwarp.StateRTS) || !up && (!errors.Is(err, iwarp.ErrNoRTR) || qp.State() != iwarp.StateIdle) {
				t.Errorf("the peer %s: %v, and the QP is in %v", name, err, qp.State())
			}
			if late := name == "late"; errors.Is(err, os.ErrDeadlineExceeded) != late {
				t.Errorf("the peer %s: %v", name, err)
			}
			if n := qp.Query().Receives; n != 1 {
				t.Errorf("the peer %s: %d receives are left", name, n)
			}
			_ = qp.Abort()
		})
	}
}

// TestAwaitNoRTR: nobody waits for an RTR indication that is not owed.
func TestAwaitNoRTR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, qp, accepted := awaiting(t, 1)
		must(t, <-accepted)
		if qp.State() != iwarp.StateRTS {
			t.Errorf("the QP is in %v", qp.State())
		}
		_ = qp.Abort()
	})
}
