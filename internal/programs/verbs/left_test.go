//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// answered plays a caller of the queue's that has its answer, and owes the RTR indication.
func (q *queue) answered(from uint32) *script.Link {
	q.t.Helper()
	request := script.Request(mpa.DialectRFC6581, 4)
	request.ULP = q.callBy(from)
	l := script.NewLink(q.dialedWith(request.Octets()))
	reply, err := l.Frame(time.Time{})
	must(q.t, errnoOf(err))
	l.Operate(script.TermsOf(mpa.RoleInitiator, mpa.StartupFrame(request.Octets()), reply))
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
