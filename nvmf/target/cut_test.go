package target_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// errCut ends a connection.
var errCut = errors.New("cut")

// A cutter is a connection that ends after so many writes.
type cutter struct {
	*testrig.Conn
	left *atomic.Int32
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.left.Add(-1) < 0 {
		_ = c.SetLinger(0)
		return 0, errors.Join(errCut, c.Close())
	}
	return c.Conn.Write(b)
}

// TestCuts cuts the connections after each message, of either side: what was under way ends, everything is given back,
// and a host that connects again finds the disk with all that was said to be done, and each block as it was or as it
// was to be.
func TestCuts(t *testing.T) {
	for ours := range 2 {
		for after := range int32(40) {
			if !cutAfter(t, ours == 0, after) {
				break // everything was done before
			}
		}
	}
}

// cutAfter reports whether the cut came before the end.
func cutAfter(t *testing.T, ours bool, after int32) (cut bool) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		left := new(atomic.Int32)
		left.Store(after)
		r.wrap = func(host, target *testrig.Conn) (a, b conn) {
			if ours {
				return &cutter{host, left}, target
			}
			return host, &cutter{target, left}
		}
		done := r.workUntilCut()
		cut = left.Load() < 0
		r.wrap = nil
		synctest.Wait()
		a := r.admin()
		w := r.io(a, 1, 8)
		for i := range 4 {
			w.want(capsule.Success, blocks(uint64(i*8), 8, w.keyed(0, 4096)).Command(capsule.OpRead), nil)
			got, was, is := string(w.get(0, 4096)), string(make([]byte, 4096)), string(pattern(4096, byte(i)))
			if got != is && (got != was || i < done) {
				t.Errorf("cut after %d: blocks %d, of %d that were written, are neither as they were nor as they were to be", after, i, done)
			}
		}
	})
	if t.Failed() {
		t.Fatalf("cut after %d messages", after)
	}
	return cut
}

// workUntilCut connects and writes, and returns how many Writes have completed.
func (r *rig) workUntilCut() (done int) {
	a, err := r.try(requestOf(0, 32), offer)
	if err != nil || !a.tryConnect() {
		return 0
	}
	w, err := r.try(requestOf(1, 8), offer)
	if err != nil {
		return 0
	}
	w.ctrl, w.host = a.ctrl, a.host
	n := capsule.Connect{SGL: capsule.SGL{Type: capsule.SGLOffset, Length: 1024}, QID: 1, SQSize: 7}
	if got, ok := w.try(n.Command(), w.data(a.ctrl, nqn).Append(nil)); !ok || got.Status != capsule.Success {
		return 0
	}
	for i := range 4 {
		if got, ok := w.try(blocks(uint64(i*8), 8, w.put(pattern(4096, byte(i)), i*4096)).Command(capsule.OpWrite),
			nil); !ok || got.Status != capsule.Success {
			break
		}
		done++
	}
	return done
}

func (w *wire) tryConnect() bool {
	got, ok := w.try(capsule.Connect{SGL: w.put(w.data(capsule.AnyController, nqn).Append(nil), 0),
		SQSize: 31}.Command(), nil)
	if !ok || got.Status != capsule.Success {
		return false
	}
	w.ctrl = uint16(got.Result)
	got, ok = w.try(capsule.PropertyAccess{Property: capsule.PropertyCC,
		Value: uint64(capsule.ConfigurationEnabled)}.Set(), nil)
	return ok && got.Status == capsule.Success
}
