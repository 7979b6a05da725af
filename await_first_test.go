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

// awaiting accepts the Request of a peer whose first message is awaited, on a QP with a receive, and returns when the answer is there.
func awaiting(t *testing.T, first []byte, cfg iwarp.QPConfig) (*peer, *iwarp.QP, <-chan error) {
	t.Helper()
	rnic := newRNIC(t, iwarp.RNICConfig{})
	qp := create(t, newPD(t, rnic), cfg)
	must(t, qp.PostRecv(&iwarp.RecvWR{ID: 7}))
	p, req := askOverPipe(t.Context(), t, iwarp.ListenConfig{RNIC: rnic, RTRTimeout: time.Minute}, first)
	accepted := dialInBackground(t, func() error { return req.AcceptQP(t.Context(), qp, iwarp.AcceptConfig{AwaitFirst: true}) })
	p.wantFrame(mpa.KeyReply)
	return p, qp, accepted
}

// TestAwaitFirst: AcceptQP waits for what the Initiator sends first, be it an RTR indication or not. Where the peer goes away without, or takes too long
// for an RTR indication, the QP keeps its receive.
func TestAwaitFirst(t *testing.T) {
	for rev, waits := range map[uint8]error{1: iwarp.ErrAwaitingInitiator, 2: iwarp.ErrNoRTR} {
		first := frame(request(rev))
		for name, comes := range map[string]func(p *peer){
			"leaves": func(p *peer) { _ = p.conn.Close() },
			"late":   func(*peer) { time.Sleep(time.Hour) },
			"sends":  func(p *peer) { p.send(p.write(1, 0, nil)) },
		} {
			synctest.Test(t, func(t *testing.T) {
				p, qp, accepted := awaiting(t, first, iwarp.QPConfig{})
				synctest.Wait()
				select {
				case err := <-accepted:
					t.Fatalf("revision %d: accepted before the peer has sent anything: %v", rev, err)
				default:
				}
				comes(p)
				up := name == "sends"
				if rev == 1 && name == "late" { // it may take any time
					up = true
					p.send(p.write(1, 0, nil))
				}
				err := <-accepted
				if up && (err != nil || qp.State() != iwarp.StateRTS) || !up && (!errors.Is(err, waits) || qp.State() != iwarp.StateIdle) {
					t.Errorf("revision %d, the peer %s: %v, and the QP is in %v", rev, name, err, qp.State())
				}
				if name == "late" && !up && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("not a timeout: %v", err)
				}
				if n := qp.Query().Receives; n != 1 {
					t.Errorf("revision %d, the peer %s: %d receives are left", rev, name, n)
				}
				_ = qp.Abort()
			})
		}
	}
}

// TestAwaitFirstEarly: nobody waits for an Initiator before whose first message we may send.
func TestAwaitFirstEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, qp, accepted := awaiting(t, frame(request(1)), iwarp.QPConfig{SendEarly: time.Second})
		must(t, <-accepted)
		_ = qp.Abort()
	})
}
