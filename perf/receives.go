package perf

import (
	"fmt"

	"github.com/goiwarp/iwarp"
)

// receives are the receives of one slice: exactly as many as there will be
// messages, so that none is left over for the next.
type receives struct {
	size    int // bytes each message must have; 0 for credits and signals
	written int // bytes that the Write of each message must have had; 0 if there is none
	sized   int // messages that have these; what comes after them is empty
	total   int
	ahead   int // posted at most before they are used
	wrs     []iwarp.RecvWR

	posted, done int
}

// plan says what this side of the lane will receive in a slice.
func (l *qpLane) plan(j job) receives {
	switch {
	case j.Both:
		return l.planBoth(j)
	case j.Op.Fetches():
		return receives{}
	case j.Quantity == Latency && j.Op.untold(): // a signal for each Write
		return signals(j.Count, j.Slots)
	case j.receives(l.side) && j.Op.tells():
		return l.messages(j)
	case j.Op.tells(): // credits
		return signals(j.credits(), j.Slots/j.creditGrain()+2)
	default: // one signal after the last Write, or the answer to it
		return signals(1, 1)
	}
}

// planBoth is plan for both directions: the initiator's last message, or completed Read,
// makes the responder send a signal when it has done its own part.
func (l *qpLane) planBoth(j job) receives {
	r := receives{}
	switch {
	case j.Op.tells():
		r = l.messages(j)
	case l.side == initiator || j.Op.untold():
		return signals(1, 1)
	}
	if l.side == initiator {
		r.total++
	}
	return r
}

// signals are receives of zero-length Sends, which need no buffer.
func signals(total, ahead int) receives {
	return receives{total: total, ahead: ahead, wrs: make([]iwarp.RecvWR, 1)}
}

// messages are receives into the slots of the sink. Those of a Write with Immediate need no buffer: it is in its slot
// when they complete.
func (l *qpLane) messages(j job) receives {
	if j.Op.immediate() {
		r := signals(j.Count, j.Slots)
		r.written, r.sized = j.Size, j.Count
		return r
	}
	sgl := make([]iwarp.SGE, j.Slots)
	wrs := make([]iwarp.RecvWR, j.Slots)
	for slot := range wrs {
		sgl[slot] = l.rx.Slice(slot*j.Size, j.Size)
		wrs[slot].SGL = sgl[slot : slot+1 : slot+1]
	}
	return receives{size: j.Size, sized: j.Count, total: j.Count, ahead: j.Slots, wrs: wrs}
}

// post posts as many receives as may be ahead.
func (r *receives) post(qp *iwarp.QP) error {
	for r.posted < min(r.total, r.done+r.ahead) {
		wr := &r.wrs[r.posted%len(r.wrs)]
		wr.ID = uint64(r.posted)
		if err := qp.PostRecv(wr); err != nil {
			return fmt.Errorf("perf: posting a receive: %w", err)
		}
		r.posted++
	}
	return nil
}

// received takes account of a message.
func (r *receives) received(wc *iwarp.WC) error {
	size := 0
	if r.done < r.sized {
		size = r.size
		if r.written > 0 && !(wc.HasImmediate && wc.Immediate == uint64(r.done) && wc.Written == r.written) {
			return fmt.Errorf("perf: received %v, expected the Immediate Data of message %d, after a Write of %d bytes", wc, r.done, r.written)
		}
	}
	if wc.ID != uint64(r.done) || wc.Length != size {
		return fmt.Errorf("perf: received message %d of %d bytes, expected message %d of %d bytes",
			wc.ID, wc.Length, r.done, size)
	}
	r.done++
	return nil
}
