package sctp_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/sctp"
)

// patience is the longest of an Association's times: that for the answer to an Initiate.
const patience = 10 * time.Second

// wantDeadline expects an end that waits for its peer to have a deadline. A session whose half the consumer
// alone has closed may take as long as the consumer wants, once the peer is told.
func (p *pair) wantDeadline(e *end) {
	if e.a.End().How != sctp.NotYet {
		return
	}
	for id := range uint16(6) {
		s, at := e.a.State(id), e.a.Deadline()
		waits := s == sctp.InitiateSent || s == sctp.Draining || s == sctp.TerminateSent &&
			!(e.closed[id] && e.said[id])
		if waits && (at.IsZero() || at.After(p.now.Add(patience))) {
			p.Fatalf("stream %d waits in state %v, and the deadline is %v (it is %v)", id, s, at, p.now)
		}
	}
}

// discard drops what an end has to say, and returns what its consumer hears.
func discard(e *end) (heard []sctp.Event) {
	for _, ok := e.a.Output(); ok; _, ok = e.a.Output() {
	}
	for v, ok := e.a.Event(); ok; v, ok = e.a.Event() {
		heard = append(heard, v)
	}
	return heard
}

// wake lets time pass for an end to which nothing comes any more, as long as it has a deadline.
func (p *pair) wake(e *end) {
	for range 100 {
		at := e.a.Deadline()
		if at.IsZero() {
			return
		}
		if p.now.Before(at) {
			p.now = at
		}
		e.a.HandleTimeout(p.now)
		discard(e)
		p.wantDeadline(e)
	}
	p.Fatalf("there is always another deadline")
}

// TestWhoeverWaits has the peer fall silent at any time, after it has said something wrong or not: whoever
// waits for it has a deadline in every state. When the consumer has given up what is open, each stream comes
// to an end in the time that an Initiate and an end may take.
func TestWhoeverWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.step(t)
			p.wantDeadline(p.ends[0])
			p.wantDeadline(p.ends[1])
			if p.reset {
				return
			}
		}
		e := p.ends[rapid.IntRange(0, 1).Draw(t, "who waits")]
		failed := map[uint16]bool{}
		if rapid.Bool().Draw(t, "wrong") {
			for id := range uint16(6) {
				if n := len(p.other(e).order[id]); n > 0 && e.a.State(id) == sctp.Open {
					e.a.Receive(p.now, sctp.Message{Stream: id, PPID: 99, Data: []byte{0, 0}})
				}
			}
			for _, v := range discard(e) {
				failed[v.Stream] = failed[v.Stream] || v.Kind == sctp.EventFailed
			}
		}
		began := p.now
		p.wake(e)
		for id := range failed {
			if s := e.a.State(id); s == sctp.Open {
				t.Fatalf("stream %d has failed, and is open for ever", id)
			}
		}
		for id := range uint16(6) {
			e.a.Abort(p.now, id)
			e.closed[id] = false
		}
		p.wantDeadline(e)
		p.wake(e)
		for id := range uint16(6) {
			if s := e.a.State(id); s != sctp.Idle && s != sctp.Dead && e.a.End().How == sctp.NotYet {
				t.Fatalf("stream %d waits for ever in state %v", id, s)
			}
		}
		if took := p.now.Sub(began); took > 10*patience {
			t.Fatalf("the end took %v", took)
		}
	})
}

func (p *pair) other(e *end) *end {
	if e == p.ends[0] {
		return p.ends[1]
	}
	return p.ends[0]
}
