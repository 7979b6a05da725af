package sctp

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestSCTPSlowSessions: sessions share a slow path, on which each would wait for many seconds if all that the others
// have queued went first. Their ends close while they have much to say: all of them go on all the time, and nothing is
// lost.
//
// Proves D30.
func TestSCTPSlowSessions(t *testing.T) {
	const sends = 5
	for loss, sessions := range map[float64]int{0.03: 6, 0.01: 20} {
		synctest.Test(t, func(t *testing.T) {
			p := rig.NewLinkedPair(t, testrig.Link{Delay: 40 * time.Millisecond, Rate: 1 << 20,
				Lose: testrig.Lossy(loss, 1)})
			var ends []*rig.End
			for range sessions {
				ini, res := p.Connect(rig.DeepQueues())
				ends = append(ends, ini, res)
			}
			for i := 0; i < len(ends); i += 2 {
				rig.PostSends(ends[i], ends[i+1], sends)
			}
			began := time.Now()
			var closes sync.WaitGroup
			for i, e := range ends {
				closes.Go(func() {
					if err := e.Close(); err != nil {
						t.Errorf("session %d of %d, after %v: %v", i/2, sessions, time.Since(began), err)
					}
				})
			}
			closes.Wait()
			t.Logf("%d sessions with a loss of %v: %v", sessions, loss, time.Since(began))
			rig.WantSends(t, sends, ends...)
		})
	}
}

// TestSCTPSlowShare: three sessions share a path of 64 KiB a second, and close one after the other while each has data
// under way. What one side sends fills the path's queue, and what the other waits for, acknowledgements among it, takes
// seconds through it: no session gets the bytes that count as progress, and the association is never idle.
//
// Proves D30.
func TestSCTPSlowShare(t *testing.T) {
	const sends = 3
	for seed := range uint64(12) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := rig.NewLinkedPair(t, testrig.Link{Delay: 18 * time.Millisecond, Rate: 64 << 10,
					Lose: testrig.Lossy(0.01, seed)})
				var ends []*rig.End
				for range 3 {
					ini, res := p.Connect(rig.DeepQueues())
					ends = append(ends, ini, res)
				}
				var closes sync.WaitGroup
				for i := 0; i < len(ends); i += 2 {
					rig.PostSends(ends[i], ends[i+1], sends)
					time.Sleep(time.Duration(seed) * 50 * time.Millisecond)
				}
				for i, e := range ends {
					closes.Go(func() {
						time.Sleep(time.Duration(i) * time.Duration(seed) * 50 * time.Millisecond)
						rig.Should(t, e.Close())
					})
				}
				closes.Wait()
				rig.WantSends(t, sends, ends...)
			})
		})
	}
}

// TestSCTPCloseThenExit: a program that ends when Close has returned takes nothing along, on a path of 0.6 s there and
// back that loses 3 %: the other end has received all, and its Close returns too.
//
// Proves D30.
func TestSCTPCloseThenExit(t *testing.T) {
	const sends = 2
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			p := rig.NewLinkedPair(t, testrig.Link{Delay: 300 * time.Millisecond, Lose: testrig.Lossy(0.03, seed)})
			ini, res := p.Connect(iwarp.QPConfig{SendDepth: 64, RecvDepth: 64, CloseTimeout: 20 * time.Second})
			rig.PostSends(ini, res, sends)
			rig.Must(t, p.CloseThenExit(ini, res))
			rig.WantSends(t, sends, ini, res)
		})
	}
}

// TestSCTPHalfClosed: what the peer says long after we have closed our half arrives, as over TCP.
//
// Proves D33.
func TestSCTPHalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rig.NewLinkedPair(t, testrig.Link{Delay: 40 * time.Millisecond})
		ini, res := p.Connect(iwarp.QPConfig{HalfClose: true})
		rig.Must(t, ini.CloseWrite())
		time.Sleep(10 * time.Minute)
		sink, src := ini.MR(1000, iwarp.LocalWrite), res.Filled(1000, 1, 0)
		ini.MustPostRecv(1, sink.Slice(0, 1000))
		rig.Must(t, res.Send(t.Context(), src.Slice(0, 1000)))
		ini.WantReceived(1, iwarp.StatusSuccess)
		rig.Finish(t, ini, res)
	})
}
