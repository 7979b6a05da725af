package engine

import (
	"testing"
	"time"
)

// TestLingerForNobody: where no event tells of the peer's FIN, our half waits only for a program that may answer. With
// nothing to answer no timer is armed.
func TestLingerForNobody(t *testing.T) {
	const linger = 100 * time.Millisecond
	sends := func(p *peer, id uint64) { p.post(work(id, OpSend)); p.want(send(uint32(id), nil)) }
	gets := func(p *peer, msn uint32) { p.receive(uint64(msn)); p.send(send(msn, nil)) }
	for what, c := range map[string]struct {
		watched bool
		before  func(p *peer)
		want    time.Duration
	}{
		"nothing has happened": {before: func(*peer) {}},
		"an event tells":       {watched: true, before: func(*peer) {}, want: linger},
		"a message, long ago":  {before: func(p *peer) { gets(p, 1); p.advance(time.Hour) }, want: linger},
		"one of two is answered": {before: func(p *peer) {
			gets(p, 1)
			gets(p, 2)
			sends(p, 1)
			p.advance(time.Hour)
		}, want: linger},
		"one of two is answered by a Write and a message": {before: func(p *peer) {
			gets(p, 1)
			gets(p, 2)
			p.post(work(7, OpWrite))
			p.want(write(0, 0, nil))
			sends(p, 1)
			p.advance(time.Hour)
		}, want: linger},
		"the peer has written": {before: func(p *peer) {
			p.send(write(p.region(make([]byte, 8), remoteAll).STag(), 0, []byte("question")))
			p.advance(time.Hour)
		}, want: linger},
		"the peer has written, and was answered": {before: func(p *peer) {
			p.send(write(p.region(make([]byte, 8), remoteAll).STag(), 0, []byte("question")))
			sends(p, 1)
			p.advance(time.Hour)
		}},
		"a receive that is flushed": {before: func(p *peer) { p.receive(9) }, want: linger},
		"an answer, long ago":       {before: func(p *peer) { gets(p, 1); sends(p, 1); p.advance(time.Hour) }},
		"the beginning of an answer": {before: func(p *peer) {
			gets(p, 1)
			sends(p, 1)
			p.advance(linger / 4)
		}, want: linger * 3 / 4},
		"more posts than messages": {before: func(p *peer) {
			sends(p, 1)
			sends(p, 2)
			gets(p, 1)
			p.advance(time.Hour)
		}, want: linger},
		"an answer that is on its way": {before: func(p *peer) { gets(p, 1); p.post(work(1, OpSend)) }, want: linger},
	} {
		p := initiator(t, func(s *setup) { s.Linger, s.Unwatched = linger, func() bool { return !c.watched } })
		c.before(p)
		p.fin()
		p.output()
		if c.want > 0 {
			if left := p.Machine.Deadline().Sub(p.clock); left != c.want {
				t.Errorf("%s: our half stays open for %v, want %v", what, left, c.want)
			}
			p.advance(c.want)
		}
		if p.Machine.State() != Idle || !p.Machine.Deadline().IsZero() {
			t.Errorf("%s: in state %v, with the deadline %v", what, p.Machine.State(), p.Machine.Deadline())
		}
	}
}

// TestAnswerAfterFIN: a server that answers 50 ms after the peer's FIN, by two requests with as much between them, gets
// its answer out.
func TestAnswerAfterFIN(t *testing.T) {
	const computes = 50 * time.Millisecond
	p := initiator(t, func(s *setup) { s.Linger, s.Unwatched = 2*computes, func() bool { return true } })
	p.receive(1)
	p.send(send(1, nil))
	p.fin()
	for i := range uint32(2) {
		p.advance(computes)
		p.post(work(uint64(i), OpSend))
		p.want(send(i+1, nil))
	}
	p.wantState(RTS)
	p.advance(2 * computes)
	p.wantState(Idle)
}
