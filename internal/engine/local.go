package engine

import "github.com/goiwarp/iwarp/internal/memory"

// Local operations change what STags stand for, and send nothing. RDMA verbs 8: they take
// effect before any later request starts, and do not wait for earlier ones.

// fences reports whether what a request with a fence waits for is still to come.
//
// RDMA verbs 8: a Read Fence waits for all earlier Reads, and a Local Fence, that of a local
// operation, for all earlier requests.
func (q *Machine) fences(e *sendEntry) bool {
	return q.orq.Len() > 0 || e.Op.local() && q.sq.Head() < q.sq.next
}

// carryOut carries out a local operation.
func (q *Machine) carryOut(e *sendEntry) bool {
	q.sq.next++
	if f := e.change(q.cfg.Memory); f != memory.None {
		status, what := e.Op.failure()
		q.workError(e, status, what+": "+f.String())
		return true
	}
	e.phase = phaseDone
	q.retire()
	return true
}

func (e *sendEntry) change(d memory.Domain) memory.Fault {
	switch e.Op {
	case OpBind:
		return d.Bind(e.Bind.Window, e.Bind.Binding)
	case OpFastRegister:
		return d.FastRegister(e.Register.Region, &e.Register.Registration)
	}
	// RDMA verbs 7: the key matches. A request before this one may have changed it.
	if e.Target == nil || e.Invalidate != 0 && e.Invalidate != e.Target.STag() {
		return memory.InvalidSTag
	}
	return d.LocalInvalidate(e.Target)
}

// failure is what a local operation that fails completes with, and what it is called.
func (o Op) failure() (s Status, what string) {
	switch o {
	case OpBind:
		return StatusBindFailed, "binding of a Memory Window"
	case OpFastRegister:
		return StatusRegisterFailed, "registration by a request"
	}
	return StatusInvalidateFailed, "local invalidation"
}
