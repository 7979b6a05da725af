//go:build linux && (amd64 || arm64)

package verbs

import (
	"sync"
	"syscall"

	"github.com/goiwarp/iwarp"
)

// An SRQ is a struct ibv_srq.
type SRQ struct {
	source
	srq *iwarp.SRQ

	posting sync.Mutex
	recvs   receives
	limit   int
}

// CreateSRQ returns a Shared Receive Queue. The token names it in the events of the context.
func (d *Device) CreateSRQ(context, pd Handle, depth, limit int, token uint64) (Handle, syscall.Errno) {
	x, p := d.contexts.get(context), d.pds.get(pd)
	if x == nil || p == nil {
		return 0, syscall.EINVAL
	}
	srq, err := p.pd.CreateSRQ(iwarp.SRQConfig{Depth: depth, Limit: limit})
	if err != nil {
		return 0, errnoOf(err)
	}
	s := &SRQ{source: source{context: x, token: token}, srq: srq, limit: limit}
	d.sources.Store(srq, &s.source)
	return made(d.srqs.add(s))
}

// ModifySRQ sets the depth, if it is not 0, and the limit, if it is not negative.
func (d *Device) ModifySRQ(h Handle, depth, limit int) syscall.Errno {
	s := d.srqs.get(h)
	if s == nil {
		return syscall.EINVAL
	}
	if depth != 0 {
		if err := s.srq.Resize(depth); err != nil {
			return errnoOf(err)
		}
	}
	if limit < 0 {
		return fine
	}
	s.posting.Lock()
	defer s.posting.Unlock()
	err := s.srq.Arm(limit)
	if err == nil {
		s.limit = limit
	}
	return errnoOf(err)
}

// QuerySRQ returns the depth and the limit.
func (d *Device) QuerySRQ(h Handle) (depth, limit int, errno syscall.Errno) {
	s := d.srqs.get(h)
	if s == nil {
		return 0, 0, syscall.EINVAL
	}
	s.posting.Lock()
	defer s.posting.Unlock()
	return s.srq.Depth(), s.limit, fine
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
	if d.srqs.take(h) == nil {
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
	bad, err := s.recvs.post(d, wr, s.srq, false)
	return bad, errnoOf(err)
}
