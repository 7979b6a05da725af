//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// answered plays a caller of the queue's that has its answer, and owes the RTR indication.
func (q *queue) answered(from uint32) *script.Link {
	q.t.Helper()
	request := script.Request(mpa.DialectRFC6581, 4)
	request.ULP = q.callBy(from)
	l := script.NewLink(q.dialedWith(request.Bytes()))
	reply, err := l.Frame(time.Time{})
	must(q.t, errnoOf(err))
	l.Operate(script.TermsOf(mpa.RoleInitiator, mpa.StartupFrame(request.Bytes()), reply))
	return l
}

// TestLeftBeforeRTR: a program that is done with a QP while the peer's RTR indication is on its way ends the connection
// in order, and does not reset it.
func TestLeftBeforeRTR(t *testing.T) {
	for what, leave := range map[string]func(q *queue) syscall.Errno{
		"destroyed": func(q *queue) syscall.Errno { return q.d.DestroyQP(q.qp) },
		"ERR":       func(q *queue) syscall.Errno { return q.d.ModifyQP(q.qp, StateErr) },
		"RESET":     func(q *queue) syscall.Errno { return q.d.ModifyQP(q.qp, StateReset) },
	} {
		t.Run(what, func(t *testing.T) {
			b := roce(t)
			b.meet(1 << 8)
			peer, inner := b.answered(1<<8), b.inner()
			left := make(chan syscall.Errno, 1)
			go func() { left <- leave(b) }()
			until(t, "the program to leave", inner.isLeft)
			ready, _ := peer.Ready(mpa.RTRWrite)
			must(t, errnoOf(peer.Send(ready)))
			for peer.End() == script.Open {
				must(t, errnoOf(peer.Receive(time.Time{})))
			}
			want(t, "the end", peer.End(), script.FIN)
			must(t, errnoOf(peer.Conn().(*net.TCPConn).CloseWrite())) // it is not reset
			must(t, <-left)
		})
	}
}

// isLeft reports whether the program has begun to leave what the QP has met.
func (q *QP) isLeft() bool {
	q.linking.Lock()
	defer q.linking.Unlock()
	return q.meeting.over || q.meeting.path == nil
}

// inMeeting returns a QP with a meeting of which something goes on until it is canceled. A call may be being accepted.
func inMeeting(greets bool) *QP {
	q := new(QP)
	m := &q.meeting
	m.path, m.doing, m.greets = new(Path), new(sync.WaitGroup), greets
	m.ctx, m.cancel = context.WithCancel(context.Background())
	ctx := m.ctx
	m.doing.Go(func() { <-ctx.Done() })
	return q
}

// TestLeavesInTime: what goes on is canceled when the program is done with a QP. A peer that is being accepted has some
// time before that, and no more.
func TestLeavesInTime(t *testing.T) {
	for greets, wait := range map[bool]time.Duration{false: 0, true: closeTimeout} {
		for what, leave := range map[string]func(q *QP){
			"ERR":       func(q *QP) { _, _, _ = q.depart() },
			"RESET":     func(q *QP) { _ = q.cancel() },
			"destroyed": func(q *QP) { q.part(true) },
		} {
			synctest.Test(t, func(t *testing.T) {
				q, began := inMeeting(greets), time.Now()
				ctx := q.meeting.ctx
				go leave(q)
				<-ctx.Done()
				if took := time.Since(began); took != wait || !q.isLeft() {
					t.Errorf("%s, greets %t: canceled after %v, left %t", what, greets, took, q.isLeft())
				}
			})
		}
	}
}

// TestLeftIsNotTold: a program that is done with a QP does not hear how the call ends that is being accepted.
func TestLeftIsNotTold(t *testing.T) {
	for _, over := range []bool{false, true} {
		q := inMeeting(true)
		q.meeting.over = over
		if told := q.greeted(q.meeting.ctx, nil); told == over {
			t.Errorf("over %t: told %t", over, told)
		}
		q.meeting.cancel()
	}
}
