//go:build unix

package notify_test

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/notify"
)

// readable asks poll(2), and waits until the time is over.
func readable(t *testing.T, fd, milliseconds int) bool {
	t.Helper()
	ask := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ask, milliseconds)
	for err == unix.EINTR {
		n, err = unix.Poll(ask, milliseconds)
	}
	rig.Must(t, err)
	return n == 1
}

const soon = int(rig.Soon / 1e6) // in milliseconds

// The descriptor is readable while a CQ has a notice, and not otherwise. CQs that share it are told apart.
func TestCQs(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	q, err := notify.CQs(ini.SendCQ(), res.SendCQ())
	rig.Must(t, err)
	for range 3 {
		for _, e := range []*rig.End{ini, res, res, ini} {
			cq := e.SendCQ()
			if readable(t, q.Fd(), 0) {
				t.Fatal("the descriptor is readable, and there is no notice")
			}
			if got, ok := q.Get(); ok {
				t.Fatalf("there was the notice of %v", got)
			}
			cq.Arm(false)
			e.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, ID: 1})
			if !readable(t, q.Fd(), soon) || !readable(t, q.Fd(), 0) {
				t.Fatal("the descriptor does not stay readable while there is a notice")
			}
			if got, ok := q.Get(); !ok || got != cq {
				t.Fatalf("got %v, %v", got, ok)
			}
			e.WantSent(iwarp.OpWrite, 1, iwarp.StatusSuccess)
		}
	}
	rig.Should(t, q.Close())
	if _, ok := q.Get(); ok || q.Fd() != -1 {
		t.Errorf("a closed Queue has a notice, or the descriptor %d", q.Fd())
	}
	if err := q.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a second Close: %v", err)
	}
	rig.Finish(t, ini, res)
}

// makesNotice has a CQ of an end have a notice, and takes the completion that it is about.
func makesNotice(e *rig.End) {
	e.SendCQ().Arm(false)
	e.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, ID: 1})
	e.WantSent(iwarp.OpWrite, 1, iwarp.StatusSuccess)
}

// Each of several notices that are there at once is got once, and keeps the descriptor readable until then.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	q, err := notify.CQs(ini.SendCQ(), res.SendCQ())
	rig.Must(t, err)
	for range 20 {
		left := map[*iwarp.CQ]bool{ini.SendCQ(): true, res.SendCQ(): true}
		for _, e := range []*rig.End{ini, res} {
			makesNotice(e)
			rig.Until(t, func() bool { return len(e.SendCQ().Events()) == 0 }, "the Queue")
		}
		for len(left) > 0 {
			if !readable(t, q.Fd(), soon) {
				t.Fatal("the descriptor is not readable, and there is a notice")
			}
			cq, ok := q.Get()
			if !ok || !left[cq] {
				t.Fatalf("got %v, %v", cq, ok)
			}
			delete(left, cq)
		}
		if _, ok := q.Get(); ok || readable(t, q.Fd(), 0) {
			t.Fatal("there is one more")
		}
	}
	rig.Should(t, q.Close())
	rig.Finish(t, ini, res)
}

// Close does not wait for who has not got the notices for which there is no room.
func TestCloseUngot(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	for range 10 {
		q, err := notify.CQs(ini.SendCQ())
		rig.Must(t, err)
		makesNotice(ini)
		if !readable(t, q.Fd(), soon) {
			t.Fatal("there is no notice")
		}
		makesNotice(ini)
		rig.Until(t, func() bool { return len(ini.SendCQ().Events()) == 0 }, "the Queue")
		rig.Must(t, rig.Outcome(t, rig.DialInBackground(t, q.Close)))
	}
	rig.Finish(t, ini, res)
}

// All events of an RNIC come, in their order, also those that the program gets late.
func TestEvents(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	q, err := notify.Events(res.RNIC)
	rig.Must(t, err)
	rig.Finish(t, ini, res)
	var kinds []iwarp.EventKind
	for len(kinds) == 0 || kinds[len(kinds)-1] != iwarp.EventCloseComplete {
		if !readable(t, q.Fd(), soon) {
			t.Fatalf("after %v nothing comes", kinds)
		}
		if e, ok := q.Get(); ok {
			kinds = append(kinds, e.Kind)
		}
	}
	if readable(t, q.Fd(), 0) {
		t.Error("the descriptor is readable, and there is no event")
	}
	rig.Should(t, q.Close())
}

// Objects that nobody has made are errors, and do not leave a Queue that never has anything.
func TestNotMade(t *testing.T) {
	cq, err := rig.NewRNIC(t, iwarp.RNICConfig{}).CreateCQ(1)
	rig.Must(t, err)
	var none *notify.Queue[*iwarp.CQ]
	zero := new(notify.Queue[iwarp.Event])
	for name, call := range map[string]func() error{
		"no CQ":      func() error { _, err := notify.CQs(); return err },
		"nil CQ":     func() error { _, err := notify.CQs(cq, nil); return err },
		"zero CQ":    func() error { _, err := notify.CQs(new(iwarp.CQ)); return err },
		"nil RNIC":   func() error { _, err := notify.Events(nil); return err },
		"zero RNIC":  func() error { _, err := notify.Events(new(iwarp.RNIC)); return err },
		"nil Queue":  none.Close,
		"zero Queue": zero.Close,
	} {
		if err := call(); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	_, first := none.Get()
	_, second := zero.Get()
	if first || second || none.Fd() != -1 || zero.Fd() != -1 {
		t.Error("a Queue that is nil or a zero value has something")
	}
}
