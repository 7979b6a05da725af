package iwarp

import (
	"maps"
	"sync"
	"time"
)

// trimEvery is the time after which memory that a burst took is given back if it was not
// wanted meanwhile; at the latest after twice that.
const trimEvery = time.Second

// A trimmer gives back the memory of queues that have become empty. It knows only those
// that have such memory, and has no timer while there are none.
type trimmer struct {
	mu    sync.Mutex
	due   map[trimmed]struct{} // nil: the timer does not run either
	spare map[trimmed]struct{} // is empty, and takes the place of due while that is gone through
	timer *time.Timer
}

// A trimmed is something whose memory grows with its use.
type trimmed interface {
	// trim gives back what was not used since the call before. It reports whether there may
	// be more to give back later.
	trim() bool
}

// add has x trimmed until it says that there is no more to give. It may be called under
// the lock of x.
func (t *trimmer) add(x trimmed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due == nil {
		t.due = make(map[trimmed]struct{})
		t.start()
	}
	t.due[x] = struct{}{}
}

// drop forgets x, which has ended.
func (t *trimmer) drop(x trimmed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.due, x)
}

// start has the timer run. The caller holds t.mu.
func (t *trimmer) start() {
	if t.timer == nil {
		t.timer = time.AfterFunc(trimEvery, t.run)
		return
	}
	t.timer.Reset(trimEvery)
}

func (t *trimmer) run() {
	t.mu.Lock()
	if t.spare == nil {
		t.spare = make(map[trimmed]struct{})
	}
	due := t.due
	t.due, t.spare = t.spare, nil // what is added meanwhile needs no timer
	t.mu.Unlock()
	maps.DeleteFunc(due, func(x trimmed, _ struct{}) bool { return !x.trim() })
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.due, due)
	if len(t.due) == 0 {
		t.due = nil
		return
	}
	clear(due)
	t.spare = due
	t.start()
}

// slacken notes that the QP has memory that it may not need any more. The caller holds
// qp.mu.
func (qp *QP) slacken() {
	if !qp.slack && !qp.destroyed && qp.hasSlack() {
		qp.slack = true
		qp.rnic.trimmer.add(qp)
	}
}

func (qp *QP) hasSlack() bool { return qp.posts != nil || qp.eng.Slack() }

func (qp *QP) trim() bool {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.eng.Trim()
	switch {
	case qp.posts == nil:
	case qp.posts.used:
		qp.posts.used = false
	default:
		qp.posts = nil
	}
	if qp.conn != nil {
		qp.conn.Rest()
	}
	qp.slack = !qp.destroyed && qp.hasSlack()
	return qp.slack
}

// slacken is that of a QP. The caller holds cq.mu.
func (cq *CQ) slacken() {
	if !cq.slack && !cq.closed && cq.ring.Slack() {
		cq.slack = true
		cq.rnic.trimmer.add(cq)
	}
}

func (cq *CQ) trim() bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.ring.Trim()
	cq.slack = !cq.closed && cq.ring.Slack()
	return cq.slack
}

// slacken is that of a QP. The caller holds s.mu.
func (s *SRQ) slacken() {
	if !s.slack && s.work.Slack() {
		s.slack = true
		s.pd.rnic.trimmer.add(s)
	}
}

func (s *SRQ) trim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work.Trim()
	s.slack = s.work.Slack()
	return s.slack
}
