package endings

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestCloseLosesNothing has two ends post Sends and close at once: every one arrives.
//
// Proves D30, D33, S05.
func TestCloseLosesNothing(t *testing.T) {
	t.Parallel()
	for range 30 {
		ini, res := rig.Setup{Dialer: iwarp.Dialer{QP: rig.DeepQueues()},
			Accept: iwarp.AcceptConfig{QP: rig.DeepQueues()}}.Connect(t)
		rig.PostAll(ini, res)
		rig.Finish(t, ini, res)
		rig.WantAll(t, ini, res)
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
					ini, res := rig.Setup{Pipe: true, Path: delay, Dialer: iwarp.Dialer{QP: rig.DeepQueues()},
						Accept: iwarp.AcceptConfig{QP: rig.DeepQueues()}}.Connect(t)
					rig.PostAll(ini, res)
					ends := []*rig.End{ini, res}
					var closing sync.WaitGroup
					defer closing.Wait()
					closing.Go(func() {
						rig.Should(t, ends[first].Close())
					})
					time.Sleep(apart)
					rig.Should(t, ends[1-first].Close())
					closing.Wait()
					rig.WantAll(t, ini, res)
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
	check := func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: iwarp.Remote{STag: 7}})
		err := ini.Close()
		for _, err := range []error{err, ini.Err()} {
			var told *iwarp.TerminateError
			if !errors.As(err, &told) || !told.Remote || told.Code != rdmap.CodeDDPInvalidSTag {
				t.Fatalf("%v; state %v, the peer: %v in state %v", err, ini.State(), res.Err(), res.State())
			}
		}
		ini.WantEvent(iwarp.EventTerminateReceived)
		_ = res.Close()
	}
	step := 5
	if testrig.Everything() {
		step = 1
	}
	for delay := 0; delay < 40; delay += step {
		check(t, rig.Setup{})
		synctest.Test(t, func(t *testing.T) {
			check(t, rig.Setup{Pipe: true, Path: time.Duration(delay) * time.Millisecond})
		})
	}
}

// TestCloseServesReads has a server close while a client reads from it: what was asked
// for before is answered, and what comes within a round trip after that, or after anything
// else from the client; a Read that comes too late fails at the client alone.
func TestCloseServesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reads, size = 8, 64 << 10
		ini, res := rig.Setup{Pipe: true, Path: 20 * time.Millisecond}.Connect(t)
		mem, sink := res.Filled(size, 7, iwarp.RemoteRead), ini.MR(size, iwarp.LocalWrite)
		res.MustPostRecv(1, res.MR(64, iwarp.LocalWrite).Slice(0, 64))
		for id := range uint64(reads) {
			ini.MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpRead,
				SGL: []iwarp.SGE{sink.Slice(0, size)}, Remote: mem.Remote(0)})
		}
		time.Sleep(20*time.Millisecond + time.Nanosecond) // they have just arrived
		closed := make(chan error, 1)
		go func() { closed <- res.Close() }()
		for id := range uint64(reads) {
			ini.WantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
		}
		rig.Same(t, "Read", sink, mem)
		if _, err := ini.Read(t.Context(), sink.Slice(0, 8), mem.Remote(0)); err != nil {
			t.Errorf("a Read after the others: %v", err)
		}
		rig.PostSmall(ini, 1) // still goes to an end that closes
		time.Sleep(100 * time.Millisecond)
		if _, err := ini.Read(t.Context(), sink.Slice(0, 8), mem.Remote(0)); !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("a late Read: %v", err)
		}
		<-closed
		res.WantReceived(1, iwarp.StatusSuccess)
	})
}

// TestCloseAnswersReads has one end post Reads, and the other close in the same moment, or
// both: every Read gets its bytes, although no Request is there yet, and not all of them
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
	ini, res := rig.Setup{Pipe: true, Path: delay}.Connect(t)
	client, server := ini, res
	if reader == 1 {
		client, server = res, ini
	}
	time.Sleep(4 * delay) // the RTR indication arrives, and the Responder may send
	mem := server.Filled(reads*size, 7, iwarp.RemoteRead)
	sink := client.MR(reads*size, iwarp.LocalWrite)
	for id := range uint64(reads) {
		at := int(id) * size
		client.MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpRead,
			SGL: []iwarp.SGE{sink.Slice(at, size)}, Remote: mem.Remote(at)})
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
		client.WantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
	}
	rig.Same(t, "Reads", sink, mem)
	closing.Wait()
	t.Logf("%v each way, reader %d, both %t: %v", delay, reader, both, time.Since(began))
}

// TestCloseFarAway has a server close soon after the startup, on a long path.
func TestCloseFarAway(t *testing.T) {
	for _, wait := range []time.Duration{0, 20, 45, 60, 81, 100, 200} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := rig.Setup{Pipe: true, Path: 20 * time.Millisecond}.Connect(t)
			if rtt := ini.Negotiated().RTT; rtt < 40*time.Millisecond {
				t.Errorf("RTT %v", rtt)
			}
			time.Sleep(wait * time.Millisecond)
			if err := res.Close(); err != nil {
				t.Errorf("after %d ms: %v", wait, err)
			}
			if err := ini.WantEnd(); err != nil {
				t.Errorf("after %d ms: %v", wait, err)
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
		ini, res := rig.Setup{Pipe: true, Path: 10 * time.Millisecond}.Connect(t)
		mem := ini.MR(64, iwarp.LocalWrite|iwarp.RemoteWrite)
		for id := range uint64(5) {
			ini.MustPostRecv(id, mem.Slice(0, 8))
		}
		res.MustPostRecv(7)
		rig.Must(t, ini.CloseWrite())
		res.WantEvent(iwarp.EventHalfClosed)
		wc := res.WantReceived(7, iwarp.StatusFlushed)
		if !errors.Is(wc.Err(), iwarp.ErrPeerClosed) || res.Err() != nil {
			t.Errorf("the receive: %v; the QP: %v", wc.Err(), res.Err())
		}
		if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrPeerClosed) ||
			!errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("another receive: %v", err)
		}
		src := res.Filled(64, 1, 0)
		for id := range uint64(5) {
			time.Sleep(80 * time.Millisecond)
			if _, err := res.Write(t.Context(), src.Slice(8, 56), mem.Remote(8)); err != nil {
				t.Fatal(err)
			}
			rig.Must(t, res.Send(t.Context(), src.Slice(0, 8)))
			ini.WantReceived(id, iwarp.StatusSuccess)
		}
		rig.Same(t, "Writes and Sends", mem, src)
		for _, e := range []*rig.End{res, ini} {
			rig.Should(t, e.WantEnd())
		}
		if !errors.Is(res.Err(), iwarp.ErrPeerClosed) || errors.Is(ini.Err(), iwarp.ErrPeerClosed) {
			t.Errorf("%v; %v", res.Err(), ini.Err())
		}
	})
}

// A client and its server, which has a message on its way to it.
type visit struct{ client, server *rig.End }

// visits has clients connect to a Listener of a Protection Domain.
func visits(t *testing.T, ln *iwarp.Listener, pd *iwarp.PD) (vs []visit) {
	for range 4 {
		c, s := &rig.End{T: t, RNIC: rig.NewRNIC(t, iwarp.RNICConfig{})}, &rig.End{T: t, RNIC: pd.RNIC(), PD: pd}
		c.PD = rig.NewPD(t, c.RNIC)
		accepted := s.Takes(ln, iwarp.AcceptConfig{})
		rig.Must(t, <-c.Dials(iwarp.Dialer{PD: c.PD}, ln))
		rig.Must(t, <-accepted)
		c.MustPostRecv(5, c.MR(64, iwarp.LocalWrite).Slice(0, 64))
		s.MustPost(&iwarp.SendWR{ID: 9, Op: iwarp.OpSend, Inline: []byte("goodbye")})
		vs = append(vs, visit{c, s})
	}
	return vs
}

// TestShutdown has a server go, which ends its connections in order: those that came by
// the Listener, or all of the RNIC's.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
		pd := rig.NewPD(t, rnic)
		ln := rig.Listen(t, iwarp.ListenConfig{PD: pd})
		other, _ := rig.Setup{Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic)}}.Connect(t) // not by the Listener
		vs := visits(t, ln, pd)
		_ = vs[0].server.Close() // is gone already
		shutdown := ln.Shutdown
		if all {
			shutdown = rnic.Shutdown
		}
		rig.Should(t, shutdown(rig.Within(t)))
		for i, v := range vs {
			v.client.WantReceived(5, iwarp.StatusSuccess)
			if err := v.client.WantEnd(); err != nil || !errors.Is(v.client.Err(), iwarp.ErrPeerClosed) {
				t.Errorf("client %d: %v", i, v.client.Err())
			}
			if s := v.server.State(); s != iwarp.StateClosed {
				t.Errorf("server %d: %v", i, s)
			}
		}
		if _, err := ln.Accept(rig.Within(t)); !errors.Is(err, iwarp.ErrClosed) {
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
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1})
	p.Send(p.Write(1, 0, nil)) // its RTR indication
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := res.RNIC.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := res.Err(); res.State() != iwarp.StateError || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("left in state %v: %v", res.State(), err)
	}
	p.Conn.Close()
}

// TestCloseBeforeRTR has a Responder close before the Initiator's RTR indication has come, on a path of which it knows
// nothing else: Reads that the Initiator posts meanwhile are answered.
//
// Proves D30.
func TestCloseBeforeRTR(t *testing.T) {
	const delay = 20 * time.Millisecond
	for _, after := range []time.Duration{0, delay / 2, delay - 1} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := rig.Setup{Pipe: true, Path: delay}.Connect(t)
			rig.AnswersWhile(t, ini, res, after)
		})
	}
}
