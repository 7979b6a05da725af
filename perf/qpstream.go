package perf

import "fmt"

// stream moves the slice's messages, as many under way as the job's depth and
// the other end's receives allow, and returns when they have arrived.
func (r *qpRun) stream() error {
	if err := r.postAll(); err != nil {
		return err
	}
	return r.finish(r.Count, r.recvs.total)
}

// streamBack is the responder's part if there is one in both directions: its own messages,
// and a signal when they, and the initiator's, have arrived.
func (r *qpRun) streamBack() error {
	if err := r.postAll(); err != nil {
		return err
	}
	if err := r.finish(r.Count, r.recvs.total); err != nil {
		return err
	}
	if err := r.postSignal(r.Count+1, false); err != nil {
		return r.lost(err)
	}
	return r.finish(r.Count+1, r.recvs.total)
}

// postAll posts the slice's messages as the window opens.
func (r *qpRun) postAll() error {
	for r.posted < r.Count {
		for limit := r.window(); r.posted < limit; r.posted++ {
			if err := r.post(r.posted); err != nil {
				return r.lost(fmt.Errorf("posting message %d: %w", r.posted, err))
			}
		}
		if err := r.flush(); err != nil {
			return r.lost(err)
		}
		if err := r.wait(); err != nil {
			return err
		}
	}
	return nil
}

// window returns up to which message one may post now.
func (r *qpRun) window() int {
	limit := min(r.Count, r.done+r.Depth)
	switch {
	case !r.Op.tells():
	case r.Both:
		// Neither end is ahead of the other by more than half the receives, so that
		// those never run out: no credits are needed.
		limit = min(limit, r.recvs.done+r.Slots/2)
	default: // what the responder has, or had, receives for
		limit = min(limit, r.Slots+r.recvs.done*r.creditGrain())
	}
	return limit
}

// absorb is the responder's part of a stream of Sends.
func (r *qpRun) absorb() error {
	for given := 0; given < r.credits(); given++ {
		due := min(r.Count, (given+1)*r.creditGrain())
		if err := r.finish(0, due); err != nil {
			return err
		}
		if err := r.postSignal(given+1, false); err != nil {
			return err
		}
	}
	return r.finish(r.credits(), r.Count)
}

// answerSignal is the responder's part of a stream of Writes: the signal that
// was sent after them has arrived, so they have arrived too.
func (r *qpRun) answerSignal() error {
	if err := r.finish(0, 1); err != nil {
		return err
	}
	if err := r.postSignal(1, false); err != nil {
		return err
	}
	return r.finish(1, 1)
}
