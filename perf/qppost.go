package perf

import "github.com/goiwarp/iwarp"

// post posts message i. The completion's ID is the number of messages that
// are done with it, so that completions can be left out.
func (r *qpRun) post(i int) error {
	switch r.Op {
	case Send:
		return r.postSend(i)
	case Write:
		return r.postWrite(i)
	default:
		return r.postRead(i)
	}
}

func (r *qpRun) postSend(i int) error {
	r.out.stamped(&r.job, i)
	r.wrs[0] = iwarp.SendWR{ID: uint64(i + 1), Op: iwarp.OpSend, SGL: r.slot(i), Unsignaled: !r.signaled(i)}
	return r.qp.PostSend(&r.wrs[0])
}

// postWrite posts a Write and, when the other end is to know of it, a signal
// behind it: always for latency, behind the last for bandwidth.
func (r *qpRun) postWrite(i int) error {
	r.out.stamped(&r.job, i)
	signal := i+1 == r.Count || r.Quantity == Latency
	r.wrs[0] = iwarp.SendWR{
		ID: uint64(i + 1), Op: iwarp.OpWrite, SGL: r.slot(i),
		Remote:     r.peer.RX.Add(r.out.offset(i)),
		Unsignaled: signal || !r.signaled(i),
	}
	if !signal {
		return r.qp.PostSend(&r.wrs[0])
	}
	r.wrs[1] = signalWR(i+1, !r.signaled(i))
	_, err := r.qp.PostSends(r.wrs[:])
	return err
}

// postSignal posts a zero-length Send: a credit, or "look at your memory".
func (r *qpRun) postSignal(id int, unsignaled bool) error {
	r.wrs[0] = signalWR(id, unsignaled)
	return r.qp.PostSend(&r.wrs[0])
}

func signalWR(id int, unsignaled bool) iwarp.SendWR {
	return iwarp.SendWR{ID: uint64(id), Op: iwarp.OpSend, Unsignaled: unsignaled}
}

// postRead asks for a completion in latency runs always, as that is what is
// waited for.
func (r *qpRun) postRead(i int) error {
	r.wrs[0] = iwarp.SendWR{
		ID: uint64(i + 1), Op: iwarp.OpRead, SGL: r.slot(i),
		Remote:     r.peer.TX.Add(r.out.source(i) * r.Size),
		Unsignaled: r.Quantity == Bandwidth && !r.signaled(i),
	}
	return r.qp.PostSend(&r.wrs[0])
}

// slot returns the local memory of message i.
func (r *qpRun) slot(i int) []iwarp.SGE {
	slot := i % r.Slots
	return r.local[slot : slot+1 : slot+1]
}
