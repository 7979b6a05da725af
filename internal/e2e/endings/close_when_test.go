package endings

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
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
			client, server := rig.Setup{Pipe: true, Path: path,
				Dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 2, ORD: 2}}}.Connect(t)
			time.Sleep(4 * path) // the Responder knows the round trip
			away, sink := server.MR(64, iwarp.RemoteRead), client.MR(64, iwarp.LocalWrite)
			for id := range uint64(reads) {
				client.MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpRead,
					SGL: []iwarp.SGE{sink.Slice(0, 64)}, Remote: away.Remote(0)})
			}
			var closing sync.WaitGroup
			closing.Go(func() { rig.Should(t, server.Close()) })
			rig.Should(t, client.Close())
			closing.Wait()
			for id := range uint64(reads) {
				client.WantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
			}
		})
	}
}

// BenchmarkCloseUnderReads has both ends close in the moment after one has posted Reads, alone or after Sends, on
// several connections at a time: the goroutines of one wait for the others'. It measures of how many connections Reads
// come too late. What the peer's system has not let it send by the end of the wait cannot be answered, and how much
// that is is the scheduler's to say: a few in a thousand or in a hundred connections. Without the wait it is one in
// fifteen that have sent nothing else, and nearly all after Sends. TestCloseAnswersReadsBusy has those that have
// arrived.
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
	client, server := rig.Setup{Dialer: iwarp.Dialer{QP: rig.DeepQueues()},
		Accept: iwarp.AcceptConfig{QP: rig.DeepQueues()}}.Connect(t)
	defer client.RNIC.Close()
	defer server.RNIC.Close()
	const reads, size = 8, 64 << 10
	away, mem := server.MR(size, iwarp.LocalWrite|iwarp.RemoteRead), client.MR(size, iwarp.LocalWrite)
	for id := range uint64(sends) {
		server.MustPostRecv(id, away.Slice(0, size))
	}
	for range sends {
		client.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{mem.Slice(0, size)}})
	}
	for range reads {
		client.MustPost(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{mem.Slice(0, 4096)}, Remote: away.Remote(0)})
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

// TestBeginClose does not wait for the end, on a path of 75 ms: what was posted before, and what the peer has under
// way, arrives, and nothing is posted after.
func TestBeginClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true, Path: 75 * time.Millisecond}.Connect(t)
		mine, theirs := ini.MR(8, iwarp.LocalWrite), res.MR(8, iwarp.LocalWrite)
		rig.Must(t, ini.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mine.Slice(0, 8)}}))
		rig.Must(t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{theirs.Slice(0, 8)}}))
		rig.Must(t, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{mine.Slice(0, 8)}}))
		rig.Must(t, res.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{theirs.Slice(0, 8)}}))

		began := time.Now()
		for range 2 {
			emulation.BeginClose(ini.QP)
			if took := time.Since(began); took != 0 {
				t.Errorf("it took %v", took)
			}
			if err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}); !errors.Is(err, iwarp.ErrClosed) {
				t.Errorf("a Send after that: %v", err)
			}
		}
		for _, e := range []*rig.End{ini, res} {
			wc, err := e.RecvCQ().Next(t.Context())
			rig.Must(t, err)
			rig.Should(t, wc.Err())
		}
		<-ini.Done()
		rig.Should(t, ini.Close())
		rig.Should(t, res.Close())
	})
}

// TestBeginCloseUnconnected begins nothing.
func TestBeginCloseUnconnected(t *testing.T) {
	ini, _ := rig.Connect(t)
	qp, err := ini.PD.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	emulation.BeginClose(qp)
	if qp.State() != iwarp.StateIdle {
		t.Errorf("state %v", qp.State())
	}
	rig.Must(t, qp.PostRecv(&iwarp.RecvWR{}))
	rig.Should(t, qp.Close())
}

// TestBeginCloseReuse leads a QP whose close was begun to another connection, as after any other end.
func TestBeginCloseReuse(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	emulation.BeginClose(ini.QP)
	<-ini.Done()
	rig.Should(t, res.Close())
	rig.Must(t, ini.Modify(iwarp.StateIdle))
	rig.Must(t, ini.PostRecv(&iwarp.RecvWR{}))
	ln := rig.Listen(t, iwarp.ListenConfig{})
	next := rig.NewEnd(t, iwarp.RNICConfig{})
	taken := next.Takes(ln, iwarp.AcceptConfig{PD: next.PD})
	rig.Must(t, new(iwarp.Dialer).DialQP(rig.Within(t), ini.QP, "tcp", ln.Addr().String()))
	rig.Must(t, <-taken)
	rig.Must(t, ini.Send(rig.Within(t), iwarp.SGE{}))
	rig.Should(t, ini.CloseWrite())
}

// TestCreateWhileRNICCloses creates QPs while their RNIC is being closed: none is left, and the race detector finds
// nothing.
func TestCreateWhileRNICCloses(t *testing.T) {
	for range 300 {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pd := rig.NewPD(t, rnic)
		created := make(chan *iwarp.QP)
		go func() {
			qp, _ := pd.CreateQP(iwarp.QPConfig{}) // or the RNIC was closed before
			created <- qp
		}()
		rig.Should(t, rnic.Close())
		if <-created; rnic.Stats().QPs != 0 {
			t.Fatal("a QP is left")
		}
	}
}
