package perf

import "github.com/goiwarp/iwarp"

// post hands message i to the send queue, with others before it once there are as many as
// the job's PostList says. The completion's ID is the number of messages that are done by
// then, so that not every message needs a completion.
func (r *qpRun) post(i int) error {
	switch {
	case r.Op.Fetches():
		r.addFetch(i)
	case r.Op.untold():
		r.addWrite(i)
	default:
		r.addTold(i)
	}
	if len(r.list) < r.PostList && i+1 < r.Count && r.Quantity == Bandwidth {
		return nil
	}
	return r.flush()
}

// flush posts what waits for its list to be full.
func (r *qpRun) flush() (err error) {
	switch len(r.list) {
	case 0:
		return nil
	case 1:
		err = r.qp.PostSend(&r.list[0])
	default:
		_, err = r.qp.PostSends(r.list)
	}
	r.list = r.list[:0]
	return err
}

// addTold adds a message of which the other end learns by itself.
func (r *qpRun) addTold(i int) {
	wr := iwarp.SendWR{ID: uint64(i + 1), Op: ops[r.Op].posts, Unsignaled: !r.signaled(i)}
	if r.Op.placed() {
		wr.Remote = r.peer.RX.Add(r.out.offset(i))
	}
	if r.Op.immediate() {
		wr.Immediate = uint64(i)
	}
	r.list = append(r.list, r.outbound(i, wr))
}

// addWrite adds a Write and, if the other end must know of it, a signal after
// it: always for latency, after the last one for bandwidth.
func (r *qpRun) addWrite(i int) {
	signal := i+1 == r.Count && (r.side == initiator || !r.Both) || r.Quantity == Latency
	r.list = append(r.list, r.outbound(i, iwarp.SendWR{
		ID: uint64(i + 1), Op: ops[r.Op].posts, Remote: r.peer.RX.Add(r.out.offset(i)),
		Unsignaled: signal || !r.signaled(i),
	}))
	if signal {
		r.list = append(r.list, signalWR(i+1, !r.signaled(i)))
	}
}

// outbound completes a work request that sends message i.
func (r *qpRun) outbound(i int, wr iwarp.SendWR) iwarp.SendWR {
	msg := r.out.stamped(&r.job, i)
	if r.Inline {
		wr.Inline = msg
	} else {
		wr.SGL = r.slot(i)
	}
	return wr
}

// addFetch adds a Read, or an Atomic Operation that leaves the word as it is: what it fetches can be verified as that
// of a Read. In latency runs, which wait for it, it always asks for a completion.
func (r *qpRun) addFetch(i int) {
	r.list = append(r.list, iwarp.SendWR{
		ID: uint64(i + 1), Op: ops[r.Op].posts, SGL: r.slot(i),
		Remote:     r.peer.TX.Add(r.out.source(i) * r.Size),
		Unsignaled: r.Quantity == Bandwidth && !r.signaled(i),
	})
}

// postSignal posts a zero-length Send: a credit, or "look at your memory".
func (r *qpRun) postSignal(id int, unsignaled bool) error {
	r.list = append(r.list, signalWR(id, unsignaled))
	return r.flush()
}

func signalWR(id int, unsignaled bool) iwarp.SendWR {
	return iwarp.SendWR{ID: uint64(id), Op: iwarp.OpSend, Unsignaled: unsignaled}
}

// slot returns the local memory of message i.
func (r *qpRun) slot(i int) []iwarp.SGE {
	slot := i % r.Slots
	return r.local[slot : slot+1 : slot+1]
}
