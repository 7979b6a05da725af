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
	mu  sync.Mutex
	due map[trimmed]struct{} // nil: there is no timer either
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
		time.AfterFunc(trimEvery, t.run)
	}
	t.due[x] = struct{}{}
}

// drop forgets x, which has ended.
func (t *trimmer) drop(x trimmed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.due, x)
}

func (t *trimmer) run() {
	t.mu.Lock()
	due := t.due
	t.due = make(map[trimmed]struct{}) // what is added meanwhile needs no timer
	t.mu.Unlock()
	maps.DeleteFunc(due, func(x trimmed, _ struct{}) bool { return !x.trim() })
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.due, due)
	if len(t.due) == 0 {
		t.due = nil
		return
	}
	time.AfterFunc(trimEvery, t.run)
}

// slacken notes that the QP has memory that it may not need any more. The caller holds
// qp.mu.
func (qp *QP) slacken() {
	if !qp.slack && !qp.destroyed && qp.eng.Slack() {
		qp.slack = true
		qp.rnic.trimmer.add(qp)
	}
}

func (qp *QP) trim() bool {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.eng.Trim()
	qp.posts, qp.inline, qp.local = nil, nil, nil
	qp.slack = !qp.destroyed && qp.eng.Slack()
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
