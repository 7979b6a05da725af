//go:build linux && (amd64 || arm64)

package verbs

import (
	"cmp"
	"sync"
	"syscall"

	"github.com/goiwarp/iwarp"
)

// An SRQ is a struct ibv_srq.
type SRQ struct {
	source
	srq  *iwarp.SRQ
	sges int32 // that a receive has at most

	posting sync.Mutex
	recvs   receives
}

// CreateSRQ returns a Shared Receive Queue, of whose receives each has so many elements at most. The token names it in
// the events of the context.
func (d *Device) CreateSRQ(context, pd Handle, depth int, sges int32, token uint64) (Handle, syscall.Errno) {
	x, p := d.contexts.get(context), d.pds.get(pd)
	if x == nil || p == nil {
		return 0, syscall.EINVAL
	}
	srq, err := p.pd.CreateSRQ(iwarp.SRQConfig{Depth: depth})
	if err != nil {
		return 0, errnoOf(err)
	}
	s := &SRQ{source: source{context: x, token: token}, srq: srq, sges: sges}
	d.sources.Store(srq, &s.source)
	return made(d.srqs.add(s))
}

// ModifySRQ sets the depth, if it is not 0, and the limit, if it is not negative. "If any of the modify attributes is
// invalid, none of the attributes will be modified" (ibv_modify_srq(3)).
func (d *Device) ModifySRQ(h Handle, depth, limit int) syscall.Errno {
	s := d.srqs.get(h)
	if s == nil {
		return syscall.EINVAL
	}
	s.posting.Lock()
	defer s.posting.Unlock()
	now := s.srq.Query()
	switch {
	case limit > cmp.Or(depth, now.Depth):
		return syscall.EINVAL
	case depth != 0 && limit >= 0: // another limit is in the way of none
		_ = s.srq.Arm(0)
	}
	if depth != 0 {
		if err := s.srq.Resize(depth); err != nil {
			if limit >= 0 {
				_ = s.srq.Arm(now.Limit)
			}
			return errnoOf(err)
		}
	}
	if limit < 0 {
		return fine
	}
	return errnoOf(s.srq.Arm(limit))
}

// QuerySRQ returns the depth, and the limit: 0 when it is not armed any more.
func (d *Device) QuerySRQ(h Handle) (depth, limit int, errno syscall.Errno) {
	s := d.srqs.get(h)
	if s == nil {
		return 0, 0, syscall.EINVAL
	}
	a := s.srq.Query()
	return a.Depth, a.Limit, fine
}

// DestroySRQ ends a queue. It is EBUSY while a QP uses it.
func (d *Device) DestroySRQ(h Handle) syscall.Errno {
	s := d.srqs.get(h)
	if s == nil {
		return syscall.EINVAL
	}
	if s.srq.Close() != nil {
		return syscall.EBUSY
	}
	if d.srqs.remove(h) == nil {
		return syscall.EINVAL
	}
	d.sources.Delete(s.srq)
	s.silence()
	return fine
}

// PostSRQ posts a list of receives. After an error bad is the one that it is about.
func (d *Device) PostSRQ(h Handle, wr *RecvWR) (bad *RecvWR, errno syscall.Errno) {
	s := d.srqs.get(h)
	if s == nil {
		return wr, syscall.EINVAL
	}
	s.posting.Lock()
	defer s.posting.Unlock()
	bad, err := s.recvs.post(d, wr, s.srq, s.sges, false)
	return bad, errnoOf(err)
}
