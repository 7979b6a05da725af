package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A silent peer is nudged: after Nudge, and then at four times the distance each.
func TestNudge(t *testing.T) {
	const nudge = 10 * time.Millisecond
	p := initiator(t, func(s *setup) { s.Nudge = nudge })
	p.advance(time.Hour)
	p.wantNothing() // nothing of ours has left yet
	p.post(work(1, OpSend))
	p.want(send(1, nil))
	wait := nudge
	for range maxNudges {
		p.advance(wait - 1)
		p.wantNothing()
		p.advance(1)
		p.want(indications[mpa.RTRWrite])
		wait *= 4
	}
	p.wantNotices(slices.Repeat([]NoticeKind{NoticeNudge}, maxNudges)...)
	if at := p.Machine.Deadline(); !at.IsZero() {
		t.Errorf("a deadline in %v, and no more nudges", at.Sub(p.clock))
	}
	p.advance(1000 * time.Hour)
	p.wantNothing()
	if got := p.Machine.Stats().Nudges; got != maxNudges {
		t.Errorf("%d nudges", got)
	}
	p.done = nil
	p.noCompletion()
}

// The time begins when the first bytes have left, and more of them do not put it off.
func TestNudgeCountsFromTheFirst(t *testing.T) {
	const nudge = 10 * time.Millisecond
	p := initiator(t, func(s *setup) { s.Nudge = nudge })
	p.post(work(1, OpSend))
	p.Machine.Output(p.clock, p.g)
	p.Machine.Sent(p.clock, p.g, 0)
	if !p.Machine.Deadline().IsZero() {
		t.Error("a deadline before a byte has left")
	}
	p.want(send(1, nil))
	p.advance(nudge / 2)
	p.post(work(2, OpSend))
	p.want(send(2, nil))
	p.advance(nudge/2 - 1)
	p.wantNothing()
	p.advance(1)
	p.want(indications[mpa.RTRWrite])
}

// A nudge follows the round-trip time: nobody is silent before there was time for an
// answer, and for the FIN of one that closes a round trip after that.
func TestNudgeFollowsPath(t *testing.T) {
	const rtt = 40 * time.Millisecond
	for nudge, want := range map[time.Duration]time.Duration{10 * time.Millisecond: 3 * rtt, 4 * rtt: 4 * rtt} {
		p := initiator(t, func(s *setup) { s.Nudge, s.RTT = nudge, rtt })
		p.post(work(1, OpSend))
		p.want(send(1, nil))
		for range 2 {
			p.advance(want - 1)
			p.wantNothing()
			p.advance(1)
			p.want(indications[mpa.RTRWrite])
			want *= 4
		}
	}
	p := initiator(t, func(s *setup) { s.Nudge, s.Linger = time.Millisecond, time.Hour })
	p.post(work(1, OpSend))
	p.want(send(1, nil))
	p.fin() // it is not silent but gone
	p.advance(time.Minute)
	p.wantNothing()
}

// A peer that has answered is not nudged, nor is one by a Responder, or without the setting.
func TestNoNudge(t *testing.T) {
	nudge := func(s *setup) { s.Nudge = time.Millisecond }
	p := initiator(t, nudge)
	p.receive(1)
	p.post(work(1, OpSend))
	p.output()
	p.send(send(1, nil))
	if !p.Machine.Deadline().IsZero() {
		t.Error("a deadline")
	}
	p.post(work(2, OpSend))
	p.output()
	if !p.Machine.Deadline().IsZero() {
		t.Error("a deadline again")
	}
	p = responder(t, nudge)
	p.receive(1)
	p.send(send(1, nil))
	p.post(work(2, OpSend))
	p.output()
	if !p.Machine.Deadline().IsZero() {
		t.Error("a deadline for the Responder")
	}
	p = initiator(t)
	p.post(work(1, OpSend))
	p.output()
	if !p.Machine.Deadline().IsZero() {
		t.Error("a deadline without Nudge")
	}
}

// A nudge waits for the end of a message; one that comes late is not sent at all.
func TestNudgeBetweenMessages(t *testing.T) {
	p := initiator(t, func(s *setup) { s.Nudge = time.Millisecond })
	b := numbered(1 << 20)
	p.post(work(1, OpSend, all(p.region(b, 0), len(b))))
	p.post(work(2, OpSend))
	p.window = 100
	p.sent = append(p.sent, p.output()...)
	p.advance(time.Millisecond)
	p.window = -1
	p.segmentsBefore(indications[mpa.RTRWrite])
	p.want(send(2, nil))
	if len(p.done) != 2 {
		t.Errorf("%v", p.done)
	}

	p = initiator(t, func(s *setup) { s.Nudge = time.Millisecond })
	p.post(work(1, OpSend))
	p.output()
	p.modify(Error)
	p.Machine.HandleTimeout(p.clock.Add(time.Hour))
	p.wantLLP(Reset)
	if p.Machine.Pending() || !p.Machine.Deadline().IsZero() ||
		!errors.Is(p.Machine.PostSend(&SendWork{}), ErrBadState) {
		t.Error("goes on")
	}
}

// Where nobody is nudged, a silent peer is told of once, and nothing is sent. One that has answered is not told of.
func TestSilence(t *testing.T) {
	const silence = 3 * time.Second
	p := initiator(t, func(s *setup) { s.Silence, s.RTT = silence, time.Hour })
	p.advance(time.Hour) // nothing of ours has left yet
	p.post(work(1, OpSend))
	p.want(send(1, nil))
	p.advance(silence - 1)
	p.wantNotices()
	p.advance(1)
	p.wantNotices(NoticeSilent)
	p.notices = nil
	p.post(work(2, OpSend))
	p.want(send(2, nil))
	p.advance(time.Hour)
	p.wantNothing()
	p.wantNotices()
	if st := p.Machine.Stats(); st.Nudges > 0 || !p.Machine.Deadline().IsZero() {
		t.Errorf("%d nudges, a deadline %v", st.Nudges, p.Machine.Deadline())
	}

	p = initiator(t, func(s *setup) { s.Silence = silence })
	p.receive(1)
	p.post(work(2, OpSend))
	p.want(send(1, nil))
	p.send(send(1, nil))
	p.advance(time.Hour)
	p.wantNotices()
}

// The cause of a lost connection speaks of nudges where the peer was nudged and said nothing after that.
func TestLostAfterNudge(t *testing.T) {
	lost := errors.New("connection reset by peer")
	for name, c := range map[string]struct {
		set    func(*setup)
		before func(*peer)
		blamed bool
	}{
		"after a nudge": {func(s *setup) { s.Nudge = time.Millisecond },
			func(p *peer) { p.advance(time.Millisecond) }, true},
		"before": {func(s *setup) { s.Nudge = time.Millisecond }, func(*peer) {}, false},
		"after an answer": {func(s *setup) { s.Nudge = time.Millisecond },
			func(p *peer) { p.advance(time.Millisecond); p.send(write(1, 0, nil)) }, false},
		"after silence alone": {func(s *setup) { s.Silence = time.Millisecond },
			func(p *peer) { p.advance(time.Millisecond) }, false},
	} {
		p := initiator(t, c.set)
		p.post(work(1, OpSend))
		p.want(send(1, nil))
		c.before(p)
		p.Machine.Failed(p.clock, lost)
		p.collectOutputs()
		if err := p.Machine.Cause(); !errors.Is(err, lost) || !errors.Is(err, ErrLost) ||
			strings.Contains(err.Error(), "QPConfig.Nudge") != c.blamed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of what is sent it is known whether all of it is nudges.
func TestOnlyNudges(t *testing.T) {
	for _, more := range []bool{false, true} {
		p := initiator(t, func(s *setup) { s.Nudge = time.Millisecond })
		p.post(work(1, OpSend))
		p.want(send(1, nil))
		p.window = 0
		p.advance(5 * time.Millisecond)
		if p.Machine.Stats().Nudges != 2 {
			t.Fatalf("%d nudges", p.Machine.Stats().Nudges)
		}
		if more {
			p.post(work(2, OpSend))
		}
		if p.Machine.Output(p.clock, p.g); p.g.OnlyNudges() == more {
			t.Errorf("only nudges: %t", !more)
		}
	}
}

// An Initiator like ours may send one empty Write as its RTR indication and six nudges; whoever else sends empty
// Writes, or more of them, is odd.
//
// Proves Z30.
func TestEmptyWritesAreOdd(t *testing.T) {
	const writes = maxNudges + 3
	for _, tt := range []struct {
		role   mpa.Role
		layer  Layer
		excuse uint64
	}{
		{mpa.RoleResponder, LayerStream, maxNudges + 1}, {mpa.RoleInitiator, LayerStream, 0},
		{mpa.RoleResponder, LayerMessages, 0},
	} {
		p := newPeer(t, tt.role, func(s *setup) {
			if tt.layer == LayerMessages {
				messages(s)
			}
		})
		for i := range uint64(writes) {
			if empty := write(1, 2, nil); tt.layer == LayerMessages {
				p.segment(i, empty.ulpdu())
			} else {
				p.send(empty)
			}
		}
		if st := p.Machine.Stats(); st.Odd.Empty != writes-tt.excuse || st.Received[rdmap.OpWrite].Messages != writes {
			t.Errorf("%v, %v: %d of %d are odd", tt.role, tt.layer, st.Odd.Empty, st.Received[rdmap.OpWrite].Messages)
		}
	}
}
