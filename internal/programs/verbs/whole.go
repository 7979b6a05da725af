//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/emulation"
)

// ibv_post_send stops at the first request of a list that cannot be posted. ibv_wr_complete posts the whole list, or
// nothing of it (ibv_wr_post(3)).

// PostAll posts all requests of a list or, after an error, none, as ibv_wr_complete does.
func (d *Device) PostAll(h Handle, wr *SendWR) syscall.Errno {
	q := d.qps.get(h)
	if q == nil || !q.takesSends() {
		return syscall.EINVAL
	}
	q.sending.Lock()
	defer q.sending.Unlock()
	if q.departed() {
		return q.flushAll(wr)
	}
	err := q.sends.postAll(q, wr)
	if q.over(err) {
		return q.flushAll(wr)
	}
	return errnoOf(err)
}

// postAll posts the whole list, or nothing of it.
func (s *sends) postAll(q *QP, wr *SendWR) error {
	s.all, s.sges, s.inline = s.all[:0], s.sges[:0], s.inline[:0]
	for ; wr != nil; wr = wr.Next {
		s.all = append(s.all, iwarp.SendWR{})
		if errno := s.add(q, wr, &s.all[len(s.all)-1]); errno != fine {
			return errno
		}
	}
	if len(s.all) == 1 {
		return q.sender().PostSend(&s.all[0])
	}
	return emulation.PostAll(q.sender(), &s.all)
}

// flushAll flushes the whole list, or nothing of it.
func (q *QP) flushAll(wr *SendWR) syscall.Errno {
	real, n := q.sender().Query(), 0
	for next := wr; next != nil; next = next.Next {
		n++
	}
	if n > q.config.SendDepth-real.Sends-real.UnpolledSends-int(q.lateSends.Load()) {
		return syscall.ENOMEM
	}
	_, errno := q.flushSends(wr)
	return errno
}

// SendAllDatagrams sends all datagrams of a list or, after an error, none, as ibv_wr_complete does.
func (d *Device) SendAllDatagrams(h Handle, wr *SendWR) syscall.Errno {
	u := d.uds.get(h)
	if u == nil {
		return syscall.EINVAL
	}
	u.sending.Lock()
	defer u.sending.Unlock()
	ahead := int32(0)
	for w := wr; w != nil; w = w.Next {
		if _, errno := u.judge(w, ahead); errno != fine {
			return errno
		}
		ahead++
	}
	for ; wr != nil; wr = wr.Next {
		if errno := u.send(wr); errno != fine {
			return errno // the QP has changed meanwhile
		}
	}
	return fine
}
