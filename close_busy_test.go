package iwarp_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestCloseAnswersWaitingReads has both ends close, far apart, when one has posted many more Reads
// than may be under way: each next one leaves as a response arrives, and comes a whole round trip
// after that was sent, at the very moment at which a FIN that waited no longer would go.
//
// Proves D30.
func TestCloseAnswersWaitingReads(t *testing.T) {
	const reads = 12
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const path = 129 * time.Millisecond
			client, server := setup{pipe: true, path: path, Dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 2, ORD: 2}}}.connect(t)
			time.Sleep(4 * path) // the Responder knows the round trip
			away, sink := server.mr(64, iwarp.RemoteRead), client.mr(64, iwarp.LocalWrite)
			for id := range uint64(reads) {
				client.post(&iwarp.SendWR{ID: id, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 64)}, Remote: away.Remote(0)})
			}
			var closing sync.WaitGroup
			closing.Go(func() { should(t, server.Close()) })
			should(t, client.Close())
			closing.Wait()
			for id := range uint64(reads) {
				client.wantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
			}
		})
	}
}

// BenchmarkCloseUnderReads has both ends close in the moment after one has posted Reads, alone or after Sends, on several
// connections at a time: the goroutines of one wait for the others'. It measures of how many connections Reads come too late. What the
// peer's system has not let it send by the end of the wait cannot be answered, and how much that is is the scheduler's to say: a few in
// a thousand or in a hundred connections. Without the wait it is one in fifteen that have sent nothing else, and nearly all after
// Sends. TestCloseAnswersReadsBusy has those that have arrived.
func BenchmarkCloseUnderReads(b *testing.B) {
	for _, sends := range []int{0, 4} {
		b.Run(fmt.Sprintf("sends=%d", sends), func(b *testing.B) {
			var late atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if !readsAnswered(b, sends) {
						late.Add(1)
					}
				}
			})
			b.ReportMetric(float64(late.Load())/float64(b.N), "late/op")
		})
	}
}

// readsAnswered posts work at one end, closes both, and reports whether all of it succeeded.
func readsAnswered(t testing.TB, sends int) bool {
	client, server := setup{Dialer: iwarp.Dialer{QP: deep()}, accept: iwarp.AcceptConfig{QP: deep()}}.connect(t)
	defer client.rnic.Close()
	defer server.rnic.Close()
	const reads, size = 8, 64 << 10
	away, mem := server.mr(size, iwarp.LocalWrite|iwarp.RemoteRead), client.mr(size, iwarp.LocalWrite)
	for id := range uint64(sends) {
		server.postRecv(id, away.Slice(0, size))
	}
	for range sends {
		client.post(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{mem.Slice(0, size)}})
	}
	for range reads {
		client.post(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{mem.Slice(0, 4096)}, Remote: away.Remote(0)})
	}
	var closing sync.WaitGroup
	closing.Go(func() { _ = server.Close() })
	_ = client.Close()
	closing.Wait()
	var wc [1]iwarp.WC
	good := 0
	for client.SendCQ().Poll(wc[:]) == 1 && wc[0].Err() == nil {
		good++
	}
	return good == sends+reads
}
