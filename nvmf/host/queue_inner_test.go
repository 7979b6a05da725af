package host

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestCause: what is registered in vain for a connection that has ended is the end of the session; what is for want of
// memory is not.
func TestCause(t *testing.T) {
	ours, theirs := testrig.Pipe("host", "target")
	refused := make(chan error, 1)
	go func() {
		_, err := new(iwarp.ListenConfig).Respond(testrig.Within(t), theirs, nil)
		refused <- errors.Join(err, theirs.Close())
	}()
	var qp *iwarp.QP
	_, err := (&iwarp.Dialer{Prepare: func(q *iwarp.QP) error { qp = q; return nil }}).Initiate(testrig.Within(t), ours,
		nil)
	if err == nil || qp == nil {
		t.Fatal("it is connected")
	}
	testrig.Must(t, <-refused)
	dead := make(chan struct{})
	q := &queue{qp: qp, dead: dead, fail: func(error) { close(dead) }}
	if got := q.cause(iwarp.ErrLimit); !errors.Is(got, iwarp.ErrLimit) {
		t.Errorf("want of memory: %v", got)
	}
	select {
	case <-dead:
		t.Fatal("want of memory has ended the session")
	default:
	}
	if got := q.cause(fmt.Errorf("register: %w", iwarp.ErrClosed)); !errors.Is(got, errDead) {
		t.Errorf("a connection that has ended: %v", got)
	}
}

// newIdle is a queue of three entries, of which two can be used, that is not connected.
func newIdle(id uint16) *queue {
	return newQueue(id, 3, 0, (&Dialer{}).newSession())
}

// startCommand takes a place for a command.
func (q *queue) startCommand(t *testing.T, op capsule.Opcode) *slot {
	t.Helper()
	s, err := q.acquireSlot(t.Context(), &task{cmd: capsule.NewCommand(op, 1)})
	testrig.Must(t, err)
	return s
}

// TestNames: a command goes by the name that it has on its queue.
func TestNames(t *testing.T) {
	read := capsule.NewCommand(capsule.OpRead, 1)
	for id, want := range []string{read.Name(true), read.Name(false)} {
		q := newIdle(uint16(id))
		if q.startCommand(t, capsule.OpRead); q.overdue(time.Now().Add(time.Second)) != want {
			t.Errorf("on queue %d it is called %q, and not %q", id, q.overdue(time.Now().Add(time.Second)), want)
		}
	}
}

// TestAbandoned: the place of a command for which nobody waits is free when its completion has come, also where that
// came just before.
func TestAbandoned(t *testing.T) {
	q := newIdle(1)
	for _, before := range []bool{false, true} {
		s := q.startCommand(t, capsule.OpRead)
		if !before {
			q.abandon(s)
		}
		if len(q.free) != 1 {
			t.Fatalf("%d places are free of two", len(q.free))
		}
		testrig.Must(t, q.deliver(capsule.Completion{ID: s.id()}, 0))
		if before {
			q.abandon(s)
		}
		if !q.mu.TryLock() {
			t.Fatal("the lock stays")
		}
		q.mu.Unlock()
		if len(q.free) != 2 || len(s.reply) != 0 || s.abandoned {
			t.Errorf("before: %t: %d places are free of two, and %d answers left", before, len(q.free), len(s.reply))
		}
	}
}

// TestAbandonedAfterEnd: a command of which the end of the session takes care has none of its memory left, also if its
// context has ended, too.
func TestAbandonedAfterEnd(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	q := newIdle(1)
	s := q.startCommand(t, capsule.OpRead)
	s.mr, err = pd.Register(make([]byte, 8), 0)
	testrig.Must(t, err)
	q.fail(errDead)
	q.abandon(s)
	if err := pd.Close(); err != nil || len(q.free) != 2 {
		t.Errorf("%v, and %d places are free of two", err, len(q.free))
	}
}

// TestUntaken: a completion that came just when the session ended, and that nobody has taken, is not that of the
// command which has the place next.
func TestUntaken(t *testing.T) {
	q := newIdle(1)
	s := q.startCommand(t, capsule.OpWrite)
	testrig.Must(t, q.deliver(capsule.Completion{ID: s.id()}, 0))
	q.release(s) // as do does where it has seen the end, and not the completion
	for range len(q.slots) {
		if next := q.startCommand(t, capsule.OpWrite); len(next.reply) != 0 {
			t.Errorf("command %#04x, which was not sent, has the completion of %#04x", next.id(), s.id())
		}
	}
}

// TestNotUsedAfterEnd: a place that was got just when the session ended has no other command.
func TestNotUsedAfterEnd(t *testing.T) {
	q := newIdle(1)
	q.mu.Lock()
	taken := make(chan error)
	go func() {
		_, err := q.acquireSlot(t.Context(), &task{cmd: capsule.NewCommand(capsule.OpWrite, 1)})
		taken <- err
	}()
	for len(q.free) == 2 {
		runtime.Gosched()
	}
	q.fail(errDead)
	q.mu.Unlock()
	if err := <-taken; !errors.Is(err, errDead) || len(q.free) != 2 {
		t.Errorf("%v, and %d places are free of two", err, len(q.free))
	}
}

// TestNotAsked: a completion of a command just beyond the queue, and one that invalidates what it was not asked to, are
// refused.
func TestNotAsked(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	mr, err := pd.Register(make([]byte, 8), 0)
	testrig.Must(t, err)
	for _, c := range []struct {
		name   string
		id     uint16 // beside that of the command
		mr     *iwarp.MR
		keep   bool
		key    uint32
		refuse bool
	}{
		{"its own key", 0, mr, false, mr.STag(), false},
		{"no key", 0, mr, true, 0, false},
		{"beyond the queue", 2, nil, false, 0, true},
		{"a key of none", 0, nil, false, mr.STag(), true},
		{"a key that is to be kept", 0, mr, true, mr.STag(), true},
		{"another key", 0, mr, false, mr.STag() + 1, true},
	} {
		q := newIdle(1)
		s := q.startCommand(t, capsule.OpRead)
		s.mr, q.keepKeys = c.mr, c.keep
		err := q.deliver(capsule.Completion{ID: s.id() + c.id}, c.key)
		if _, refused := errors.AsType[*ProtocolError](err); refused != c.refuse || err != nil && !refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
