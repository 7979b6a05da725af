package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Resize changes how many completions the CQ has room for, 1 to RNICAttr.MaxCQDepth. Completions that wait in it stay,
// in order; a depth that is less than their number is ErrInvalid. Give a CQ that more QPs are going to use the depth
// that Committed will say, before they are created.
func (cq *CQ) Resize(depth int) error {
	if err := cq.made(); err != nil {
		return err
	}
	if err := cq.resize(depth); err != nil {
		return &OpError{Op: "resize CQ", Err: err}
	}
	return nil
}

func (cq *CQ) resize(depth int) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.closed:
		return errCQClosed
	case cq.overflow:
		return errCQLost
	case depth < max(1, cq.ring.Len()) || depth > maxCQDepth:
		return fmt.Errorf("%w: depth %d, with %d completions in the CQ; the most is %d",
			ErrInvalid, depth, cq.ring.Len(),
			maxCQDepth)
	}
	if err := cq.rnic.ledger.change(resCQEntry, depth-cq.ring.Limit()); err != nil {
		return err
	}
	cq.ring.SetLimit(depth)
	return nil
}

// Resize changes how many receives the queue holds, 1 to MaxQueueDepth. The receives in it stay, in order; a depth that
// is less than the number of these and of those whose completions were not polled yet, or less than SRQConfig.PerQP or
// the limit that is armed, is ErrInvalid. The CQs of its QPs need room for the new depth: see CQ.Resize.
func (s *SRQ) Resize(depth int) error {
	if err := s.made(); err != nil {
		return err
	}
	if err := s.resize(depth); err != nil {
		return &OpError{Op: "resize SRQ", Err: err}
	}
	return nil
}

func (s *SRQ) resize(depth int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := int64(s.work.Len()) + s.out.Load()
	switch {
	case s.ended:
		return errSRQClosed
	case depth < 1 || int64(depth) < used || depth > MaxQueueDepth:
		return fmt.Errorf("%w: depth %d, with %s outstanding; the most is %d", ErrInvalid, depth,
			wording.Count(used, "receive"), MaxQueueDepth)
	case depth < s.perQP:
		return fmt.Errorf("%w: depth %d is less than a QP's share, SRQConfig.PerQP, which is %d",
			ErrInvalid, depth, s.perQP)
	case depth < s.limit:
		return fmt.Errorf("%w: depth %d is less than the limit that is armed, %d: Arm a lower one first",
			ErrInvalid, depth,
			s.limit)
	}
	if err := s.pd.rnic.ledger.change(resWR, depth-s.work.Limit()); err != nil {
		return err
	}
	s.work.SetLimit(depth)
	return nil
}

// change takes more of a resource, or gives some back.
func (l *ledger) change(of resource, by int) error {
	if by > 0 {
		return l.reserve(share{of, by})
	}
	l.release(share{of, -by})
	return nil
}
