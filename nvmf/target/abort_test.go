package target_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// abortOf is an Abort for a command.
func abortOf(qid, id uint16) capsule.Command {
	c := capsule.NewCommand(capsule.OpAbort, 0)
	c.CDW[0] = uint32(qid) | uint32(id)<<16
	return c
}

// abort sends an Abort for a command, and wants it to be answered at once, with the command left to itself.
func (w *wire) abort(qid, id uint16) {
	w.t.Helper()
	began := time.Now()
	got := w.want(capsule.Success, abortOf(qid, id), nil)
	if got.Result != capsule.AbortNone || time.Since(began) != 0 {
		w.t.Errorf("an Abort for command %d of queue %d: result %d after %v", id, qid, got.Result, time.Since(began))
	}
}

// TestAbort answers an Abort at once, whatever it is for, and the commands that it is for end as if there had been
// none: once, and with their data.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, disk := newFaulty(t)
		a := r.admin()
		w := r.io(a, 1, 8)
		event := a.send(capsule.NewCommand(capsule.OpAsyncEvent, 0), nil)
		eventID := a.last
		w.want(capsule.Success, blocks(0, 1, w.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
		done := w.last
		goOn := disk.stop()
		read := w.send(blocks(0, 1, w.keyed(4096, 512)).Command(capsule.OpRead), nil)
		reading := w.last
		write := w.send(blocks(8, 1, w.put(pattern(512, 2), 8192)).Command(capsule.OpWrite), nil)
		writing := w.last
		synctest.Wait() // the disk has both
		for _, c := range []struct{ qid, id uint16 }{
			{1, done}, {1, reading}, {1, writing}, {1, reading}, // once more
			{1, 999}, {2, reading}, {0xFFFF, 0xFFFF}, // of which there are none
			{0, eventID}, // which waits for what may never come
		} {
			a.abort(c.qid, c.id)
		}
		a.abort(0, a.last+1) // itself
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(read) != 0 || len(write) != 0 || len(event) != 0 {
			t.Error("a command that was to be aborted was answered while the disk had it")
		}
		goOn()
		if r, w := <-read, <-write; r.Status != capsule.Success || w.Status != capsule.Success {
			t.Errorf("%v, %v", r.Status, w.Status)
		}
		same(t, "what was read", w.get(4096, 512), pattern(512, 1))
		same(t, "what was written", r.on(8*512, 512), pattern(512, 2))
		w.want(capsule.Success, capsule.NewCommand(capsule.OpFlush, 1), nil)
		if len(event) != 0 {
			t.Error("an event, and there are none")
		}
	})
}

// TestAbortLimit answers more Aborts at a time than a host is to send (ACL), as many as the queue has entries: none of
// them waits for anything.
func TestAbortLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, disk := newFaulty(t)
		a := r.admin()
		w := r.io(a, 1, 8)
		i, err := capsule.ParseIdentifyController(a.page(capsule.Identify{Structure: capsule.StructController}))
		must(t, err)
		goOn := disk.stop()
		flush := w.send(capsule.NewCommand(capsule.OpFlush, 1), nil)
		synctest.Wait()
		const many = 30
		if many <= int(i.AbortLimit)+1 {
			t.Fatalf("%d are to be too many, and the limit is %d", many, i.AbortLimit+1)
		}
		var aborts []chan completion
		for range many {
			aborts = append(aborts, a.send(abortOf(1, w.last), nil))
		}
		for _, answered := range aborts {
			if got := <-answered; got.Status != capsule.Success || got.Result != capsule.AbortNone {
				t.Errorf("%v, result %d", got.Status, got.Result)
			}
		}
		goOn()
		if got := <-flush; got.Status != capsule.Success {
			t.Error(got.Status)
		}
	})
}

// TestAbortCut resets either connection while a command and its Abort are under way: the disk ends with it, the other
// end is told of nothing, and the target ends in order.
func TestAbortCut(t *testing.T) {
	for name, cut := range map[string]func(admin, io *wire){
		"admin": func(admin, _ *wire) { _ = admin.qp.Abort() },
		"io":    func(_, io *wire) { _ = io.qp.Abort() },
		"both":  func(admin, io *wire) { _ = admin.qp.Abort(); _ = io.qp.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, disk := newFaulty(t)
				a := r.admin()
				w := r.io(a, 1, 8)
				goOn := disk.stop()
				write := w.send(blocks(0, 1, w.put(pattern(512, 1), 0)).Command(capsule.OpWrite), nil)
				synctest.Wait() // the disk has it
				a.send(abortOf(1, w.last), nil)
				cut(a, w)
				time.Sleep(time.Second)
				synctest.Wait()
				if len(write) != 0 {
					t.Error("it was answered while the disk had it")
				}
				ended := make(chan error, 1)
				go func() { ended <- r.target.Shutdown(testrig.Within(t)) }()
				synctest.Wait()
				if len(ended) != 0 {
					t.Error("the target has ended while the disk had a command")
				}
				goOn()
				must(t, <-ended)
				same(t, "what was written", r.on(0, 512), pattern(512, 1))
				if name != "admin" && len(write) != 0 {
					t.Error("it was answered on a connection that was cut")
				}
			})
		})
	}
}
