package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestBothWays has two ends Send, Write and Read large amounts at once, in both
// directions, with more posted than sockets hold: a reader that waited for a
// writer would bring both to a standstill.
//
// Proves S05.
func TestBothWays(t *testing.T) {
	t.Parallel()
	const size, rounds = 1 << 20, 12
	for _, offer := range []mpa.Offer{{}, {Markers: true}} {
		ini, res := rig.Setup{Dialer: iwarp.Dialer{MPA: offer},
			Accept: iwarp.AcceptConfig{MPA: offer.Answer()}}.Connect(t)
		var both sync.WaitGroup
		load := func(e, other *rig.End, seed byte) {
			src, sink := e.Filled(size, seed, 0), e.MR(size, iwarp.LocalWrite)
			away := other.Filled(size, seed+1, iwarp.RemoteRead)
			target := other.MR(size, iwarp.RemoteWrite)
			both.Go(func() {
				for range rounds {
					e.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, size)},
						Remote: target.Remote(0), Unsignaled: true})
					e.MustPost(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, size)},
						Remote: away.Remote(0), Unsignaled: true})
				}
				rig.Should(t, e.Send(rig.Within(t), src.Slice(0, size)))
				for range rounds - 1 {
					e.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, size)}, Unsignaled: true})
				}
				for range rounds {
					e.WantReceived(1, iwarp.StatusSuccess)
				}
				other.Look()
				if !bytes.Equal(sink.Bytes(), away.Bytes()) || !bytes.Equal(target.Bytes(), src.Bytes()) {
					t.Error("the bytes differ")
				}
			})
		}
		for _, e := range []*rig.End{ini, res} { // before either sends
			inbox := e.MR(size, iwarp.LocalWrite)
			for range rounds {
				e.MustPostRecv(1, inbox.Slice(0, size))
			}
		}
		load(ini, res, 1)
		load(res, ini, 50)
		both.Wait()
		rig.Finish(t, ini, res)
	}
}

// TestSlowReader has a peer that reads nothing for a while. What is posted waits,
// and what the peer sends is taken in all the same.
func TestSlowReader(t *testing.T) {
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
	const size, n = 1 << 20, 40 // more than sockets hold
	src := res.Filled(size, 1, 0)
	for range n {
		res.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, size)},
			Remote: iwarp.Remote{STag: 5}})
	}
	dst := res.MR(8, iwarp.LocalWrite)
	res.MustPostRecv(7, dst.Slice(0, 8))
	p.Send(p.Message(rdmap.OpSend, 1, []byte("in time")))
	for {
		wc := rig.Next(t, res.SendCQ())
		if wc.Op == iwarp.OpRecv {
			break
		}
	}
	if q := res.Query(); q.Sends == 0 {
		t.Error("the sockets have taken it all: nothing was tested")
	}
	var got uint64
	for got < n*size {
		s := p.Want(rdmap.OpWrite)
		if !bytes.Equal(s.Payload, src.Bytes()[s.TO:int(s.TO)+len(s.Payload)]) {
			t.Fatal("the bytes differ")
		}
		got += uint64(len(s.Payload))
	}
	rig.Until(t, func() bool { return res.Query().Sends == 0 }, "the Writes")
}

// TestManyPosters has many goroutines use one connection by all means that there
// are, while others look at it, and ends it at a random moment.
func TestManyPosters(t *testing.T) {
	const posters = 8
	for round := range 4 {
		ini, res := rig.Setup{
			Dialer: iwarp.Dialer{QP: iwarp.QPConfig{SendDepth: 32}},
			// The posters do not stop while the other end closes, which waits for progress.
			Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{RecvDepth: 64, CloseLimit: 50 * time.Millisecond}},
		}.Connect(t)
		local, remote := ini.MR(10000, iwarp.LocalWrite), res.MR(10000, iwarp.RemoteWrite|iwarp.RemoteRead)
		ctx, cancel := context.WithCancel(rig.Within(t))
		busy := make(chan struct{}, posters) // a poster has gone through its steps many times
		var all sync.WaitGroup
		all.Go(func() { consume(ctx, res, remote) })
		for i := range posters {
			all.Go(func() { produce(ctx, t, ini, local.Slice(i*1000, 1000), remote.Remote(i*1000), busy) })
		}
		all.Go(func() {
			for ctx.Err() == nil {
				var wc [8]iwarp.WC
				for range 100 {
					ini.SendCQ().Poll(wc[:])
				}
				_, _, _ = ini.Stats(), ini.RNIC.Stats(), ini.Query()
			}
		})
		select {
		case <-busy:
		case <-ctx.Done():
			t.Fatal("the posters stand still")
		}
		switch round {
		case 0:
			_ = ini.Abort()
		case 1:
			_ = res.Abort()
		case 2:
			_ = ini.Close()
		case 3:
			_ = res.Close()
		}
		cancel()
		all.Wait()
		for _, e := range []*rig.End{ini, res} {
			if err := e.WantEnd(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			_ = e.Abort()
		}
	}
}

// consume receives until the connection or the context ends.
func consume(ctx context.Context, e *rig.End, mr *iwarp.MR) {
	var wc [16]iwarp.WC
	for e.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(9000, 1000)}}) == nil {
	}
	for e.RecvCQ().Wait(ctx) == nil {
		for range e.RecvCQ().Poll(wc[:]) {
			_ = e.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(9000, 1000)}})
		}
	}
}

// produce uses the connection until it ends.
func produce(ctx context.Context, t *testing.T, e *rig.End, s iwarp.SGE, r iwarp.Remote, busy chan<- struct{}) {
	for i := 0; ctx.Err() == nil; i++ {
		if i == 200 {
			busy <- struct{}{}
		}
		var err error
		switch i % 4 {
		case 0:
			_, err = e.Write(ctx, s, r)
		case 1:
			_, err = e.Read(ctx, s, r)
		case 2:
			err = e.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{s}, Remote: r})
		case 3:
			err = e.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("inline"), Remote: r, Unsignaled: true})
		}
		var wc *iwarp.WCError
		switch {
		case err == nil || errors.Is(err, iwarp.ErrQueueFull):
		case errors.As(err, &wc), errors.Is(err, iwarp.ErrBadState), errors.Is(err, net.ErrClosed), ctx.Err() != nil:
			return
		default:
			t.Errorf("step %d: %v", i, err)
			return
		}
	}
}

// TestCloseRaces ends connections from several sides at once, at any moment.
func TestCloseRaces(t *testing.T) {
	for i := range 30 {
		ini, res := rig.Connect(t)
		mr, src := res.MR(1<<16, iwarp.RemoteWrite|iwarp.RemoteRead), ini.MR(1<<16, iwarp.LocalWrite)
		for range 10 {
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, 1<<16)}, Remote: mr.Remote(0)})
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{src.Slice(0, 1<<16)}, Remote: mr.Remote(0)})
		}
		var all sync.WaitGroup
		all.Go(func() { _ = ini.Close() })
		switch i % 3 {
		case 0:
			all.Go(func() { _ = ini.Abort() })
		case 1:
			all.Go(func() { _ = res.Abort() })
		case 2:
			all.Go(func() { _ = mr.Deregister() })
			all.Go(func() { _ = ini.Modify(iwarp.StateTerminate) })
		}
		all.Wait()
		_ = res.WantEnd()
		_ = res.Close()
		var wc [32]iwarp.WC
		if n := ini.SendCQ().Poll(wc[:]); n != 20 {
			t.Fatalf("%d of 20 requests have completed", n)
		}
	}
}
