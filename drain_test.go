package iwarp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// Two ends of which each posts 50 Sends of 64 KiB, and closes.
const (
	drainSends = 50
	drainSize  = 64 << 10
)

func deep() iwarp.QPConfig { return iwarp.QPConfig{SendDepth: 64, RecvDepth: 64} }

// postAll posts receives for all that the other end sends, and the Sends.
func postAll(ini, res *end) { postSends(ini, res, drainSends) }

func postSends(ini, res *end, n uint64) {
	for _, e := range []*end{ini, res} {
		sink := e.mr(drainSize, iwarp.LocalWrite)
		for i := range n {
			e.postRecv(i, sink.Slice(0, drainSize))
		}
	}
	for _, e := range []*end{ini, res} {
		src := e.filled(drainSize, 1, 0)
		for i := range n {
			e.post(&iwarp.SendWR{ID: i, Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, drainSize)}})
		}
	}
}

// wantAll expects every Send and every receive to have succeeded.
func wantAll(t *testing.T, ends ...*end) {
	t.Helper()
	wantSends(t, drainSends, ends...)
}

func wantSends(t *testing.T, n int, ends ...*end) {
	t.Helper()
	for _, e := range ends {
		done := map[iwarp.Op]int{}
		var wc [1]iwarp.WC
		for e.SendCQ().Poll(wc[:]) == 1 {
			must(t, wc[0].Err())
			done[wc[0].Op]++
		}
		if done[iwarp.OpSend] != n || done[iwarp.OpRecv] != n {
			t.Fatalf("QP %d: %v of %d each; %v", e.Num(), done, n, e.Err())
		}
	}
}

// TestCloseLosesNothing has two ends post Sends and close at once: every one arrives.
//
// Proves D30, D33, S05.
func TestCloseLosesNothing(t *testing.T) {
	t.Parallel()
	for range 30 {
		ini, res := setup{Dialer: iwarp.Dialer{QP: deep()}, accept: iwarp.AcceptConfig{QP: deep()}}.connect(t)
		postAll(ini, res)
		finish(t, ini, res)
		wantAll(t, ini, res)
	}
}

// TestCloseLosesNothingFarAway is the same on long paths, whichever end closes first.
func TestCloseLosesNothingFarAway(t *testing.T) {
	const ms = time.Millisecond
	delays := []time.Duration{75 * ms}
	if testrig.Everything() {
		delays = []time.Duration{20 * ms, 75 * ms, 150 * ms}
	}
	for _, delay := range delays {
		for _, apart := range []time.Duration{0, ms, delay, 3 * delay} {
			for _, first := range []int{0, 1} {
				synctest.Test(t, func(t *testing.T) {
					ini, res := setup{pipe: true, path: delay, Dialer: iwarp.Dialer{QP: deep()}, accept: iwarp.AcceptConfig{QP: deep()}}.connect(t)
					postAll(ini, res)
					ends := []*end{ini, res}
					var closing sync.WaitGroup
					defer closing.Wait()
					closing.Go(func() {
						should(t, ends[first].Close())
					})
					time.Sleep(apart)
					should(t, ends[1-first].Close())
					closing.Wait()
					wantAll(t, ini, res)
				})
			}
		}
	}
}

// TestCloseSurfacesTerminate closes right after a Write that the peer must refuse, near
// and far: the Terminate is the error of Close and of the QP, and an event.
//
// Proves P38: it reaches the consumer.
func TestCloseSurfacesTerminate(t *testing.T) {
	check := func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		ini.post(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: iwarp.Remote{STag: 7}})
		err := ini.Close()
		for _, err := range []error{err, ini.Err()} {
			var told *iwarp.TerminateError
			if !errors.As(err, &told) || !told.Remote || told.Code != rdmap.CodeDDPInvalidSTag {
				t.Fatalf("%v; state %v, the peer: %v in state %v", err, ini.State(), res.Err(), res.State())
			}
		}
		ini.wantEvent(iwarp.EventTerminateReceived)
		_ = res.Close()
	}
	step := 5
	if testrig.Everything() {
		step = 1
	}
	for delay := 0; delay < 40; delay += step {
		check(t, setup{})
		synctest.Test(t, func(t *testing.T) {
			check(t, setup{pipe: true, path: time.Duration(delay) * time.Millisecond})
		})
	}
}

// TestCloseServesReads has a server close while a client reads from it: what was asked
// for before is answered, and what comes within a round trip after that, or after anything
// else from the client; a Read that comes too late fails at the client alone.
func TestCloseServesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reads, size = 8, 64 << 10
		ini, res := setup{pipe: true, path: 20 * time.Millisecond}.connect(t)
		mem, sink := res.filled(size, 7, iwarp.RemoteRead), ini.mr(size, iwarp.LocalWrite)
		res.postRecv(1, res.mr(64, iwarp.LocalWrite).Slice(0, 64))
		for id := range uint64(reads) {
			ini.post(&iwarp.SendWR{ID: id, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, size)}, Remote: mem.Remote(0)})
		}
		time.Sleep(20*time.Millisecond + time.Nanosecond) // they have just arrived
		closed := make(chan error, 1)
		go func() { closed <- res.Close() }()
		for id := range uint64(reads) {
			ini.wantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
		}
		same(t, "Read", sink, mem)
		if _, err := ini.Read(t.Context(), sink.Slice(0, 8), mem.Remote(0)); err != nil {
			t.Errorf("a Read after the others: %v", err)
		}
		sends(ini, 1) // still goes to an end that closes
		time.Sleep(100 * time.Millisecond)
		if _, err := ini.Read(t.Context(), sink.Slice(0, 8), mem.Remote(0)); !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("a late Read: %v", err)
		}
		<-closed
		res.wantReceived(1, iwarp.StatusSuccess)
	})
}

// TestCloseAnswersReads has one end post Reads, and the other close in the same moment, or
// both: every Read gets its octets, although no Request is there yet, and not all of them
// may be under way at once.
//
// Proves D30.
func TestCloseAnswersReads(t *testing.T) {
	const ms = time.Millisecond
	for _, delay := range []time.Duration{20 * ms, 75 * ms, 150 * ms} {
		for _, reader := range []int{0, 1} {
			for _, both := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) { closeUnderReads(t, delay, reader, both) })
			}
		}
	}
}

func closeUnderReads(t *testing.T, delay time.Duration, reader int, both bool) {
	const reads, size = 20, 64 << 10
	ini, res := setup{pipe: true, path: delay}.connect(t)
	client, server := ini, res
	if reader == 1 {
		client, server = res, ini
	}
	time.Sleep(4 * delay) // the RTR indication arrives, and the Responder may send
	mem := server.filled(reads*size, 7, iwarp.RemoteRead)
	sink := client.mr(reads*size, iwarp.LocalWrite)
	for id := range uint64(reads) {
		at := int(id) * size
		client.post(&iwarp.SendWR{ID: id, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(at, size)}, Remote: mem.Remote(at)})
	}
	began := time.Now()
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(func() {
		if err := server.Close(); err != nil {
			t.Errorf("%v each way, reader %d, both %t: %v", delay, reader, both, err)
		}
	})
	if both {
		closing.Go(func() {
			if err := client.Close(); err != nil {
				t.Errorf("%v each way, reader %d: %v", delay, reader, err)
			}
		})
	}
	for id := range uint64(reads) {
		client.wantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
	}
	same(t, "Reads", sink, mem)
	closing.Wait()
	t.Logf("%v each way, reader %d, both %t: %v", delay, reader, both, time.Since(began))
}

// TestCloseFarAway has a server close soon, on a path on which a client that hears
// nothing would be taken for one that waits for a nudge.
func TestCloseFarAway(t *testing.T) {
	for _, wait := range []time.Duration{0, 20, 45, 60, 81, 100, 200} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := setup{pipe: true, path: 20 * time.Millisecond}.connect(t)
			if rtt := ini.Negotiated().RTT; rtt < 40*time.Millisecond {
				t.Errorf("RTT %v", rtt)
			}
			time.Sleep(wait * time.Millisecond)
			if err := res.Close(); err != nil {
				t.Errorf("after %d ms: %v", wait, err)
			}
			if err := ini.wantEnd(); err != nil {
				t.Errorf("after %d ms: %v", wait, err)
			}
			if n := ini.Stats().Nudges; n > 0 && wait < 60 {
				t.Errorf("%d nudges after %d ms", n, wait)
			}
		})
	}
}

// TestWorkAfterPeerCloses posts work after the peer has closed its half, with gaps between
// that are shorter than Linger: it is carried out, and the connection ends in order after
// the last.
//
// Proves D32.
func TestWorkAfterPeerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, path: 10 * time.Millisecond}.connect(t)
		mem := ini.mr(64, iwarp.LocalWrite|iwarp.RemoteWrite)
		for id := range uint64(5) {
			ini.postRecv(id, mem.Slice(0, 8))
		}
		res.postRecv(7)
		must(t, ini.CloseWrite())
		res.wantEvent(iwarp.EventHalfClosed)
		wc := res.wantReceived(7, iwarp.StatusFlushed)
		if !errors.Is(wc.Err(), iwarp.ErrPeerClosed) || res.Err() != nil {
			t.Errorf("the receive: %v; the QP: %v", wc.Err(), res.Err())
		}
		if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrPeerClosed) || !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("another receive: %v", err)
		}
		src := res.filled(64, 1, 0)
		for id := range uint64(5) {
			time.Sleep(80 * time.Millisecond)
			if _, err := res.Write(t.Context(), src.Slice(8, 56), mem.Remote(8)); err != nil {
				t.Fatal(err)
			}
			must(t, res.Send(t.Context(), src.Slice(0, 8)))
			ini.wantReceived(id, iwarp.StatusSuccess)
		}
		same(t, "Writes and Sends", mem, src)
		for _, e := range []*end{res, ini} {
			should(t, e.wantEnd())
		}
		if !errors.Is(res.Err(), iwarp.ErrPeerClosed) || errors.Is(ini.Err(), iwarp.ErrPeerClosed) {
			t.Errorf("%v; %v", res.Err(), ini.Err())
		}
	})
}

// A client and its server, which has a message on its way to it.
type visit struct{ client, server *end }

// visits has clients connect to a Listener of a Protection Domain.
func visits(t *testing.T, ln *iwarp.Listener, pd *iwarp.PD) (vs []visit) {
	for range 4 {
		c, s := &end{t: t, rnic: newRNIC(t, iwarp.RNICConfig{})}, &end{t: t, rnic: pd.RNIC(), pd: pd}
		c.pd = newPD(t, c.rnic)
		accepted := s.takes(ln, iwarp.AcceptConfig{})
		must(t, <-c.dials(iwarp.Dialer{PD: c.pd}, ln))
		must(t, <-accepted)
		c.postRecv(5, c.mr(64, iwarp.LocalWrite).Slice(0, 64))
		s.post(&iwarp.SendWR{ID: 9, Op: iwarp.OpSend, Inline: []byte("goodbye")})
		vs = append(vs, visit{c, s})
	}
	return vs
}

// TestShutdown has a server go, which ends its connections in order: those that came by
// the Listener, or all of the RNIC's.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		rnic := newRNIC(t, iwarp.RNICConfig{})
		pd := newPD(t, rnic)
		ln := listen(t, iwarp.ListenConfig{PD: pd})
		other, _ := setup{Dialer: iwarp.Dialer{PD: newPD(t, rnic)}}.connect(t) // not by the Listener
		vs := visits(t, ln, pd)
		_ = vs[0].server.Close() // is gone already
		shutdown := ln.Shutdown
		if all {
			shutdown = rnic.Shutdown
		}
		should(t, shutdown(within(t)))
		for i, v := range vs {
			v.client.wantReceived(5, iwarp.StatusSuccess)
			if err := v.client.wantEnd(); err != nil || !errors.Is(v.client.Err(), iwarp.ErrPeerClosed) {
				t.Errorf("client %d: %v", i, v.client.Err())
			}
			if s := v.server.State(); s != iwarp.StateClosed {
				t.Errorf("server %d: %v", i, s)
			}
		}
		if _, err := ln.Accept(within(t)); !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if up := other.State() == iwarp.StateRTS; up == all {
			t.Errorf("another connection of the RNIC is up: %t", up)
		}
		if _, err := pd.CreateQP(iwarp.QPConfig{}); errors.Is(err, iwarp.ErrClosed) != all {
			t.Errorf("another QP: %v", err)
		}
	}
}

// TestShutdownTimeout has a client that does not close its half.
func TestShutdownTimeout(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1})
	p.send(p.write(1, 0, nil)) // its RTR indication
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := res.rnic.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := res.Err(); res.State() != iwarp.StateError || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("left in state %v: %v", res.State(), err)
	}
	p.conn.Close()
}

// TestCloseBeforeRTR has a Responder close before the Initiator's RTR indication has come, on a path of which it knows nothing else:
// Reads that the Initiator posts meanwhile are answered.
//
// Proves D30.
func TestCloseBeforeRTR(t *testing.T) {
	const delay = 20 * time.Millisecond
	for _, after := range []time.Duration{0, delay / 2, delay - 1} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := setup{pipe: true, path: delay}.connect(t)
			answersWhile(t, ini, res, after)
		})
	}
}

// answersWhile has one end close, and the other read some time later.
func answersWhile(t *testing.T, reader, closer *end, after time.Duration) {
	const reads, size = 4, 64
	mem, sink := closer.filled(size, 7, iwarp.RemoteRead), reader.mr(size, iwarp.LocalWrite)
	closed := dialInBackground(t, closer.Close)
	time.Sleep(after)
	for id := range uint64(reads) {
		reader.post(&iwarp.SendWR{ID: id, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, size)}, Remote: mem.Remote(0)})
	}
	for id := range uint64(reads) {
		reader.wantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
	}
	same(t, "Reads", sink, mem)
	should(t, reader.Close())
	should(t, <-closed)
}
