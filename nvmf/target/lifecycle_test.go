package target_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
)

// ended reports whether a connection has ended, in a bubble where nothing else goes on.
func (w *wire) ended() bool {
	synctest.Wait()
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// TestKeepAlive ends all connections of a host that says nothing, and none of one that does, on whatever queue.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		silent := r.dial(0, 32).connect(10000).enable()
		silentIO := r.io(silent, 1, 8)
		busy := r.dial(0, 32)
		busy.host = 2
		busy.connect(10000).enable()
		busyIO := r.io(busy, 1, 8)
		patient := r.dial(0, 32)
		patient.host = 3
		patient.connect(0).enable()
		for range 3 {
			time.Sleep(4 * time.Second)
			busyIO.want(capsule.Success, capsule.NewCommand(capsule.OpFlush, 1), nil)
		}
		if silent.ended() {
			t.Error("a host was given up that has said something 12 s ago, where it may say nothing for 10 s, and for some more")
		}
		time.Sleep(5 * time.Second)
		if !silent.ended() || !silentIO.ended() {
			t.Error("a host that says nothing has its connections")
		}
		if busy.ended() || busyIO.ended() {
			t.Error("a host that works has lost its connections")
		}
		time.Sleep(24 * time.Hour)
		if !busy.ended() || !busyIO.ended() || patient.ended() {
			t.Error("a day later")
		}
		patient.want(capsule.Success, capsule.Features{SGL: capsule.SGL{Type: capsule.SGLKeyed},
			Feature: capsule.FeatureKeepAlive, Value: 1000}.Set(), nil)
		time.Sleep(3 * time.Second)
		if !patient.ended() {
			t.Error("a keep-alive time that was set later has no effect")
		}
	})
}

// TestNoConnect ends a connection on which no Connect comes.
func TestNoConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		w := r.dial(0, 32)
		time.Sleep(9 * time.Second)
		if w.ended() {
			t.Error("ended early")
		}
		time.Sleep(2 * time.Second)
		if !w.ended() {
			t.Error("a connection without a Connect goes on")
		}
		c := r.admin()
		time.Sleep(time.Hour)
		if c.ended() {
			t.Error("a connection with a Connect has ended")
		}
	})
}

// TestAdminGone ends the I/O queues with the Admin Queue, and an I/O queue alone. Its number is free then, and that of
// the controller is not used again before all others.
func TestAdminGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		a := r.admin()
		one, two := r.io(a, 1, 8), r.io(a, 2, 8)
		must(t, one.qp.Close())
		if a.ended() || two.ended() || !one.ended() {
			t.Error("the end of an I/O queue is that of others")
		}
		r.io(a, 1, 8)
		must(t, a.qp.Close())
		if !two.ended() {
			t.Error("an I/O queue outlives its controller")
		}
		if b := r.admin(); b.ctrl == a.ctrl {
			t.Error("the number of a controller was used again at once")
		}
	})
}

// TestReconnects has a host that connects again find everything at rest that it has begun: a Write whose data have not
// come is given up, and one that the disk is busy with is waited for.
func TestReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := newFaulty(t)
		old := r.io(r.admin(), 1, 8)
		goOn := f.stop()
		old.send(blocks(0, 1, old.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
		synctest.Wait() // the data are there, and the disk has them
		again := r.dial(0, 32)
		connected := make(chan completion, 1)
		go func() {
			s := again.put(again.data(capsule.AnyController, nqn).Append(nil), 0)
			connected <- again.do(capsule.Connect{SGL: s, SQSize: 31}.Command(), nil)
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(connected) != 0 {
			t.Fatal("a Connect was answered while the disk was busy with what the host had begun before")
		}
		goOn()
		if got := <-connected; got.Status != capsule.Success || !old.ended() {
			t.Errorf("%v", got)
		}
		same(t, "what was written", r.on(0, 512), pattern(512, 1))
	})
}

// TestReconnectsStuck has a Connect refused, and not for good, while a disk does not answer.
func TestReconnectsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := newFaulty(t)
		old := r.io(r.admin(), 1, 8)
		goOn := f.stop()
		old.send(blocks(0, 1, old.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
		synctest.Wait()
		w := r.dial(0, 32)
		s := w.put(w.data(capsule.AnyController, nqn).Append(nil), 0)
		w.want(capsule.ControllerBusy, capsule.Connect{SGL: s, SQSize: 31}.Command(), nil)
		other := r.dial(0, 32)
		other.host = 7
		other.connect(0) // is another's affair
		goOn()
		w.want(capsule.Success, capsule.Connect{SGL: s, SQSize: 31}.Command(), nil)
	})
}

// TestShutdown answers what is under way, begins nothing more, flushes, and closes in order.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := newFaulty(t)
		w := r.io(r.admin(), 1, 8)
		goOn := f.stop()
		write := w.send(blocks(0, 1, w.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- r.target.Shutdown(context.Background()) }()
		synctest.Wait()
		late := w.send(blocks(1, 1, w.put(pattern(512, 2), 0)).Command(capsule.OpWrite), nil)
		synctest.Wait()
		if len(down) != 0 || w.ended() {
			t.Error("shut down while a command was under way")
		}
		goOn()
		must(t, <-down)
		if got := <-write; got.Status != capsule.Success || f.flushes.Load() != 1 {
			t.Errorf("%v, and %d flushes", got, f.flushes.Load())
		}
		if !w.ended() || len(late) != 0 {
			t.Error("a command was begun after the shutdown")
		}
		if err := w.qp.Err(); !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("the connection ended so: %v", err)
		}
		same(t, "what came too late", r.on(512, 512), make([]byte, 512))
		if _, err := r.try(requestOf(0, 32), offer); err == nil {
			t.Error("a host was taken after the shutdown")
		}
	})
}

// TestDeaf has a host that does not answer RDMA Reads lose its connection: after a while, at once when it connects
// again, and with the target.
func TestDeaf(t *testing.T) {
	for name, gives := range map[string]struct {
		up    func(*rig)
		after time.Duration
	}{
		"patience":  {func(*rig) { time.Sleep(time.Minute) }, 30 * time.Second},
		"reconnect": {func(r *rig) { r.admin() }, 0},
		"by another way": {func(r *rig) {
			r.wrap = between("192.0.2.7:1", "192.0.2.1:4420")
			r.admin()
		}, time.Second},
		"shutdown": {func(r *rig) {
			ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
			defer cancel()
			if err := r.target.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				r.t.Error(err)
			}
		}, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				w := r.io(r.admin(), 1, 8)
				w.conn.is.Store(true)
				_ = w.send(blocks(0, 1, w.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
				_ = w.send(blocks(1, 1, w.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
				synctest.Wait()
				began, ended := time.Now(), make(chan time.Duration, 1)
				go func() { <-w.over; ended <- time.Since(began) }()
				gives.up(r)
				if got := <-ended; got != gives.after {
					t.Errorf("after %v, not %v", got, gives.after)
				}
				same(t, "the disk", r.on(0, 1024), make([]byte, 1024))
			})
		})
	}
}

// TestBrokenRules ends the connection of a host that does what no host may, and no other.
func TestBrokenRules(t *testing.T) {
	t.Parallel()
	r, disk := newFaulty(t)
	a := r.admin()
	whole := blocks(0, 1, capsule.SGL{Type: capsule.SGLKeyed}).Command(capsule.OpRead)
	for name, breaks := range map[string]func(*wire){
		"half a command": func(w *wire) { w.sendBytes(whole.Append(nil)[:63]) },
		"nothing":        func(w *wire) { w.sendBytes(nil) },
		"too much":       func(w *wire) { w.sendBytes(make([]byte, 64+4096+1)) },
		"too many": func(w *wire) {
			defer disk.stop()()
			for range 9 {
				w.send(blocks(0, 1, w.keyed(0, 512)).Command(capsule.OpRead), nil)
			}
			<-w.over
		},
		"memory that was not offered": func(w *wire) {
			w.send(blocks(0, 1, capsule.SGL{Type: capsule.SGLKeyed, Length: 512,
				Key: 0x12345600}).Command(capsule.OpRead), nil)
		},
		"data from nowhere": func(w *wire) {
			w.send(blocks(0, 1, capsule.SGL{Type: capsule.SGLKeyed, Length: 512,
				Key: 0x12345600}).Command(capsule.OpWrite), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.freed(a)
			breaks(w)
			<-w.over
			a.want(capsule.Success, capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
			_ = r.freed(a).qp.Close()
		})
	}
}

// freed is I/O queue 1, when the target has noticed that the one before has ended.
func (r *rig) freed(a *wire) *wire {
	n := capsule.Connect{SGL: capsule.SGL{Type: capsule.SGLOffset, Length: 1024}, QID: 1, SQSize: 7}
	for {
		io := r.dial(1, 8)
		io.ctrl, io.host = a.ctrl, a.host
		if got := io.do(n.Command(), io.data(a.ctrl, nqn).Append(nil)); got.Status == capsule.Success {
			return io
		}
		_ = io.qp.Close()
	}
}
