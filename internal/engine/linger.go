package engine

import "time"

// lingers reports whether our half stays open with nothing to send after the peer has
// closed its own, and starts the time for that.
func (q *Machine) lingers(now time.Time) bool {
	mute := q.awaiting()
	switch {
	case mute || q.cfg.Linger <= 0 && !q.cfg.HalfClose:
		return false
	case q.cfg.HalfClose:
		return true
	case q.lingerBy.IsZero():
		q.lingerBy = q.lingerFrom(now).Add(q.cfg.Linger)
	}
	return now.Before(q.lingerBy)
}

// answers notes that the program has posted a request. A message answers one of the peer's messages. A Write does not:
// it is part of an answer, and the peer is not notified of it.
func (q *Machine) answers(op Op) {
	q.writtenTo = false
	switch op {
	case OpSend, OpWriteImm, OpImmediate:
		q.unanswered = max(q.unanswered-1, 0)
	}
}

// lingerFrom returns when the time begins for which our half stays open. Zero: no answer is to be expected, and it does
// not stay open.
//
// The time begins now if the program may still answer. That is so in three cases: it has more completed receives than
// messages posted since, where a receive that the FIN flushed counts; the peer has written to its memory since its last
// post; or an event reports the peer's FIN to it.
//
// Otherwise it begins when the last request was carried out: that may be one of several that make up an answer.
func (q *Machine) lingerFrom(now time.Time) time.Time {
	if q.unanswered > 0 || q.writtenTo || q.cfg.Unwatched == nil || !q.cfg.Unwatched() {
		return now
	}
	return q.workedAt
}
