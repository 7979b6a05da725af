package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// TestReconnect cuts the connections while much is under way, again and again: every call succeeds, and all is there.
func TestReconnect(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t).startServing()
		c, n := p.open(p.dialer())
		const part = 64 << 10
		want := random(16*part, 5)
		var all sync.WaitGroup
		for g := range 16 {
			all.Go(func() {
				back := make([]byte, part)
				for range 4 {
					if _, err := n.WriteAt(want[g*part:][:part], int64(g*part)); err != nil {
						t.Error(err)
					}
					if _, err := n.ReadAt(back, int64(g*part)); err != nil || !bytes.Equal(back, want[g*part:][:part]) {
						t.Error("part", g, err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		for range 3 {
			time.Sleep(time.Millisecond)
			p.cut()
			time.Sleep(2 * time.Second)
		}
		all.Wait()
		if !bytes.Equal(p.diskBytes()[:len(want)], want) {
			t.Error("what is there is not what was written")
		}
		if p.connections() < 6 {
			t.Errorf("%d connections: none was made again", p.connections())
		}
		testrig.Must(t, c.Close())
	})
}

// TestKeepAlive has the host tell that it is there, every half of what was agreed on, and find out that the controller
// is not.
func TestKeepAlive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t)
		var silent atomic.Bool
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			return !silent.Load() || c.Opcode != capsule.OpKeepAlive
		}
		d := p.dialer()
		d.KeepAlive, d.Timeout, d.Patience = 10*time.Second, time.Hour, -1
		_, n := p.startServing().open(d)
		time.Sleep(26 * time.Second)
		if got := len(p.commands(capsule.OpKeepAlive)); got != 5 {
			t.Errorf("%d Keep Alives in 26 s, want 5", got)
		}
		silent.Store(true)
		time.Sleep(13 * time.Second) // one after 30 s
		if _, err := n.ReadAt(make([]byte, 512), 0); err != nil {
			t.Errorf("before the time is up: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := n.ReadAt(make([]byte, 512), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after 10 s of silence: %v", err)
		}
	})
}

// TestTimeout has a controller leave a Write unanswered: the connections are made again, and it is sent again.
func TestTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t)
		var mute atomic.Bool
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			return c.Opcode != capsule.OpWrite || q.id == 0 || mute.Swap(true)
		}
		d := p.dialer()
		d.Timeout = 20 * time.Second
		_, n := p.startServing().open(d)
		start := time.Now()
		_, err := n.WriteAt(make([]byte, 8192), 0)
		testrig.Must(t, err)
		if took := time.Since(start); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("sent again after %v", took)
		}
		if got := len(p.commands(capsule.OpWrite)); got != 2 {
			t.Errorf("sent %d times", got)
		}
	})
}

// TestPoison has a command after which the controller is lost each time: it is not sent for ever.
func TestPoison(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t)
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if c.Opcode == capsule.OpWrite && q.id > 0 {
				p.cut()
			}
			return true
		}
		_, n := p.startServing().open(p.dialer())
		if _, err := n.WriteAt(make([]byte, 512), 0); err == nil {
			t.Error("a Write has succeeded that was never answered")
		}
		if got := len(p.commands(capsule.OpWrite)); got != 6 {
			t.Errorf("sent %d times, want 6", got)
		}
		_, err := n.ReadAt(make([]byte, 512), 0)
		testrig.Must(t, err)
	})
}

// TestLost tells of a controller that is lost when that happens, before there is another, and then of that. Without
// patience there is nothing to tell of.
func TestLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t).startServing()
		d := p.dialer()
		told, before := make(chan error), 0
		d.Lost = func(cause error) {
			if made := p.connections() - before; cause != nil && made != 0 {
				t.Errorf("told after %d new connections", made)
			}
			told <- cause
		}
		c, n := p.open(d)
		before = p.connections()
		p.cut()
		if cause := <-told; cause == nil {
			t.Error("it is lost, and has no cause")
		}
		if cause := <-told; cause != nil {
			t.Errorf("it is back, and not %v", cause)
		}
		_, err := n.ReadAt(make([]byte, 512), 0)
		testrig.Must(t, err)
		testrig.Must(t, c.Close())
		d.Patience, d.Lost = -1, func(cause error) { t.Errorf("%v is told of", cause) }
		c, n = p.open(d)
		p.cut()
		if _, err := n.ReadAt(make([]byte, 512), 0); err == nil {
			t.Error("a controller is back that was not to be")
		}
		_ = c.Close()
	})
}

// TestPatience has a target go away: calls wait for it as long as the Dialer has patience, and the error tells what
// happened.
func TestPatience(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t).startServing()
		d := p.dialer()
		d.Patience = 10 * time.Second
		c, n := p.open(d)
		testrig.Must(t, p.ln.Close())
		p.cut()
		start := time.Now()
		_, err := n.ReadAt(make([]byte, 512), 0)
		gone, ok := errors.AsType[*host.LostError](err)
		if !ok || gone.Cause == nil || gone.Reconnect == nil {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("given up after %v", took)
		}
		testrig.Must(t, c.Close())
	})
}

// TestWaitEnds has callers that wait for a connection give up, and Close end the attempts.
func TestWaitEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t).startServing()
		c, n := p.open(p.dialer())
		testrig.Must(t, p.ln.Close())
		p.cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Read(ctx, make([]byte, 512), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if c.Queues() != 0 || c.Identity().Model != "" {
			t.Error("a controller that is not there")
		}
		waiting := make(chan error)
		go func() { waiting <- n.Flush(context.Background()) }()
		synctest.Wait()
		testrig.Must(t, c.Close())
		if err := <-waiting; !errors.Is(err, host.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestNoUse has a target say that it does not want us any more: there are no further attempts.
func TestNoUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t)
		var refuse atomic.Bool
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if refuse.Load() {
				a.Status = capsule.InvalidHost | capsule.DNR
			}
			return true
		}
		_, n := p.startServing().open(p.dialer())
		refuse.Store(true)
		p.cut()
		start := time.Now()
		_, err := n.ReadAt(make([]byte, 512), 0)
		status, ok := errors.AsType[*host.StatusError](err)
		if !ok || status.Status.Code() != capsule.InvalidHost || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// TestChanged has another disk in the place of the first one after a reconnect: nothing is read from it, or written to
// it.
func TestChanged(t *testing.T) {
	for name, change := range map[string]func(p *peer){
		"size":  func(p *peer) { p.namespace.Size-- },
		"NGUID": func(p *peer) { p.namespace.NGUID[3]++ },
		"EUI64": func(p *peer) { p.namespace.EUI64[3]++ },
		"UUID":  func(p *peer) { p.uuid[3]++ },
		"block": func(p *peer) { p.namespace.BlockShift++ },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPeer(t).startServing()
				_, n := p.open(p.dialer())
				_, err := n.WriteAt(make([]byte, 512), 0)
				testrig.Must(t, err)
				p.mu.Lock()
				change(p)
				p.mu.Unlock()
				p.cut()
				for range 2 {
					if _, err := n.WriteAt(make([]byte, 512), 0); !errors.Is(err, host.ErrChanged) {
						t.Error(err)
					}
				}
				if got := len(p.commands(capsule.OpWrite)); got != 1 {
					t.Errorf("%d Writes", got)
				}
			})
		})
	}
}

// TestComesBackAsDiscovery: a controller that has namespaces may be a discovery controller when it comes back, or from
// the first, by a fault or on purpose. It has no queues for I/O then.
func TestComesBackAsDiscovery(t *testing.T) {
	for name, before := range map[string]bool{"from the first": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			if !before {
				p.controller.Type = capsule.ControllerDiscovery
			}
			_, n := p.startServing().open(p.dialer())
			if before {
				_, err := n.ReadAt(make([]byte, 512), 0)
				testrig.Must(t, err)
				p.mu.Lock()
				p.controller.Type = capsule.ControllerDiscovery
				p.mu.Unlock()
				p.cut()
			}
			_, err := n.ReadAt(make([]byte, 512), 0)
			if !refused(err) {
				t.Error(err)
			}
		})
	}
}

// TestTakesLess: the controller that comes back amid a transfer takes less with a command than the one before.
func TestTakesLess(t *testing.T) {
	p := newPeer(t)
	p.controller.MaxData = 5 // 2^5 pages are 128 KiB
	_, n := p.startServing().open(p.dialer())
	want := random(1<<20, 4)
	p.spoil = func(q *peerQueue, c *capsule.Command, _ *answer) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if c.Opcode == capsule.OpWrite && p.controller.MaxData == 5 {
			p.controller.MaxData = 1
			_ = q.qp.Abort()
		}
		return true
	}
	_, err := n.WriteAt(want, 0)
	testrig.Must(t, err)
	var long, short int
	for _, c := range p.commands(capsule.OpWrite) {
		switch c.IO().Blocks << 9 {
		case 128 << 10:
			long++
		case 8 << 10:
			short++
		default:
			t.Errorf("a Write of %d blocks", c.IO().Blocks)
		}
	}
	if long == 0 || short == 0 {
		t.Errorf("%d Writes of 128 KiB and %d of 8 KiB", long, short)
	}
	got := make([]byte, len(want))
	_, err = n.ReadAt(got, 0)
	testrig.Must(t, err)
	if !bytes.Equal(got, want) {
		t.Error("other bytes are there")
	}
}

// TestCutEarly cuts the connections at each command from the first one on, by which a controller and its namespaces are
// made known: it does not matter to who asks for them. Without patience there is one attempt.
func TestCutEarly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		last := -1
		for at := 1; ; at++ {
			p := newPeer(t)
			var commands atomic.Int32
			p.spoil = func(*peerQueue, *capsule.Command, *answer) bool {
				n := commands.Add(1)
				if n == int32(at) {
					p.cut()
				}
				return n != int32(at)
			}
			p.startServing()
			c, err := p.dialer().Dial(t.Context(), "tcp", "target:4420", nqn)
			if err != nil {
				t.Fatalf("cut at command %d: %v", at, err)
			}
			all, err := c.Namespaces(t.Context())
			if err != nil || len(all) != 1 {
				t.Fatalf("cut at command %d: %v, %v", at, all, err)
			}
			_, err = all[0].ReadAt(make([]byte, 512), 0)
			testrig.Must(t, err)
			last = int(commands.Load())
			ended := c.Close()
			if last < at { // and the end was cut
				break
			}
			testrig.Must(t, ended)
		}
		if last < 12 {
			t.Errorf("the connection was cut at %d commands", last)
		}
		p := newPeer(t)
		p.spoil = func(*peerQueue, *capsule.Command, *answer) bool { p.cut(); return false }
		p.startServing()
		d := p.dialer()
		d.Patience = -1
		began := time.Now()
		if _, err := d.Dial(t.Context(), "tcp", "target:4420", nqn); err == nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		d.Patience = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := d.Dial(ctx, "tcp", "target:4420", nqn); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
