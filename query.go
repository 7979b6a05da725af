package iwarp

// An SRQAttr is what SRQ.Query returns.
type SRQAttr struct {
	// Depth is how many receives the queue holds, and MaxSGE how many elements one may have.
	Depth, MaxSGE int
	// Limit is the number of receives under which an EventSRQLimit comes; 0: none is asked for.
	Limit int
	// PerQP is how many receives one QP may hold at a time; 0: there is no bound.
	PerQP int
	// Receives is how many are in the queue, and Taken how many the QPs have taken whose completions were not polled.
	Receives, Taken int
	// QPs is how many take their receives from the queue.
	QPs int
	// TakenBy is how many receives each of them has taken since it was created, by QPAttr.Num. An EventSRQLimit names
	// the QP that took the last receive above the limit: together they show which peer takes more than its share (RFC
	// 5042, section 6.4.3.1). It is nil if none was taken.
	TakenBy map[uint32]uint64
}

// Query returns the queue's present attributes.
func (s *SRQ) Query() SRQAttr {
	if s.made() != nil {
		return SRQAttr{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := SRQAttr{
		Depth: s.work.Limit(), MaxSGE: MaxSGE, Limit: s.limit, PerQP: s.perQP,
		Receives: s.work.Len(), Taken: int(s.out.Load()), QPs: s.users,
	}
	for qp, n := range s.taken {
		if a.TakenBy == nil {
			a.TakenBy = make(map[uint32]uint64)
		}
		a.TakenBy[qp.num] = n
	}
	return a
}
