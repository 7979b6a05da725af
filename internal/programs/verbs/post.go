//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"

	"github.com/goiwarp/iwarp"
)

// batch is how many work requests of a list are posted together.
const batch = 32

// receives are where a list of receives is translated, so that posting allocates nothing. They belong to a queue, under
// its lock.
type receives struct {
	wrs  [batch]iwarp.RecvWR
	sges []iwarp.SGE
}

// A recvQueue is a QP or an SRQ of package iwarp.
type recvQueue interface {
	PostRecvs(wrs []iwarp.RecvWR) (n int, err error)
}

// post posts a list of receives with so many elements at most; late leaves it to the completions to tell of an lkey
// that is wrong, as QPConfig.CheckLate. After an error bad is the request that it is about; those before it were
// posted.
func (r *receives) post(d *Device, wr *RecvWR, queue recvQueue, sges int32, late bool) (bad *RecvWR, err error) {
	errno := fine
	for wr != nil && errno == fine {
		first, n := wr, 0
		r.sges = r.sges[:0]
		for ; wr != nil && n < batch; wr = wr.Next {
			if errno = r.add(d, wr, n, sges, late); errno != fine {
				break
			}
			n++
		}
		if done, err := queue.PostRecvs(r.wrs[:n]); err != nil {
			for ; done > 0; done-- {
				first = first.Next
			}
			return first, err
		}
	}
	return wr, asError(errno)
}

// asError returns no error for the number of success.
func asError(errno syscall.Errno) error {
	if errno == fine {
		return nil
	}
	return errno
}

// add translates a receive to the nth place.
func (r *receives) add(d *Device, wr *RecvWR, n int, sges int32, late bool) syscall.Errno {
	from := len(r.sges)
	list, ok := elements(wr.SGL, wr.SGEs, sges)
	if ok {
		r.sges, ok = d.sges(r.sges, list, late)
	}
	if !ok {
		return syscall.EINVAL
	}
	r.wrs[n] = iwarp.RecvWR{ID: wr.ID, SGL: r.sges[from:]}
	return fine
}

// sends are the same for a Send Queue.
type sends struct {
	wrs    [batch]iwarp.SendWR
	sges   []iwarp.SGE
	inline []byte         // of requests whose inline data is in several elements
	all    []iwarp.SendWR // of a list that is posted as a whole
}

func (s *sends) post(q *QP, wr *SendWR) (bad *SendWR, err error) {
	errno := fine
	for wr != nil && errno == fine {
		first, n := wr, 0
		s.sges, s.inline = s.sges[:0], s.inline[:0]
		for ; wr != nil && n < batch; wr = wr.Next {
			if errno = s.add(q, wr, &s.wrs[n]); errno != fine {
				break
			}
			n++
		}
		if done, err := q.postSends(s.wrs[:n]); err != nil {
			for ; done > 0; done-- {
				first = first.Next
			}
			return first, err
		}
	}
	return wr, asError(errno)
}

// postSends sends several requests together. One by itself may be sent together with those after it.
func (q *QP) postSends(wrs []iwarp.SendWR) (n int, err error) {
	if len(wrs) != 1 {
		return q.sender().PostSends(wrs)
	}
	return 0, q.sender().PostSend(&wrs[0])
}

// add translates a request. Solicited is "Valid only for Send and RDMA Write with immediate" (ibv_post_send(3)): with
// others the flag means nothing.
func (s *sends) add(q *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	o := wr.operation()
	if o == nil {
		return syscall.EINVAL
	}
	*to = iwarp.SendWR{
		ID: wr.ID, Op: o.op, Fence: wr.Flags&sendFence != 0, Solicited: o.solicits && wr.Flags&sendSolicited != 0,
		Unsignaled: !q.signalAll && wr.Flags&sendSignaled == 0,
	}
	if errno := o.fill(q, wr, to); errno != fine || o.noData {
		return errno
	}
	list, ok := elements(wr.SGL, wr.SGEs, q.sendSGEs)
	if !ok {
		return syscall.EINVAL
	}
	if wr.Flags&sendInline != 0 && o.inline {
		return s.addInline(q, list, to)
	}
	from := len(s.sges)
	if s.sges, ok = q.device.sges(s.sges, list, q.device.roce); !ok {
		return syscall.EINVAL
	}
	if to.SGL = s.sges[from:]; to.Op == iwarp.OpRead && len(to.SGL) > 1 && !q.device.roce {
		return syscall.EINVAL // as an iWARP device
	}
	return fine
}

// addInline names the data of an inline request: where it is, if that is one place. Keys are not looked at.
func (s *sends) addInline(q *QP, list []SGE, to *iwarp.SendWR) syscall.Errno {
	total := uint64(0)
	for i := range list {
		total += uint64(list[i].Length)
	}
	if total > uint64(q.maxInline) {
		return syscall.EINVAL
	}
	if len(list) == 1 {
		m, ok := list[0].memory()
		to.Inline = m
		return faultUnless(ok)
	}
	from := len(s.inline)
	all, ok := gatherInline(s.inline, list)
	s.inline, to.Inline = all, all[from:]
	return faultUnless(ok)
}

// gatherInline appends the memory of the elements, and reports whether each names some.
func gatherInline(to []byte, list []SGE) (_ []byte, ok bool) {
	for i := range list {
		m, ok := list[i].memory()
		if !ok {
			return to, false
		}
		to = append(to, m...)
	}
	return to, true
}

func faultUnless(ok bool) syscall.Errno {
	if ok {
		return fine
	}
	return syscall.EFAULT
}
