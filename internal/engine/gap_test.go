package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

const gapTime = 10 * time.Second

func overGaps(t *testing.T) *sender {
	return overMessages(t, mpa.RoleResponder, func(s *setup) { s.Config.GapTimeout = gapTime })
}

// wantGap expects the end of a connection whose next segment has not come.
func (s *sender) wantGap(at uint64) {
	s.Helper()
	f := s.wantCause(rdmap.CodeMPALocalCatastrophic, false)
	if !errors.Is(f, ErrGap) || !errors.Is(f, ErrTimeout) || f.Offset != at {
		s.Errorf("ended with %v, want one that lacks segment %d", f, at)
	}
	if want := terminate(rdmap.CodeMPALocalCatastrophic).ulpdu(); string(s.sent) != string(want) {
		s.Errorf("sends % x, want % x", s.sent, want)
	}
}

// TestGap: a segment that others came ahead of is waited for, and not for ever; each one that comes, where others are
// missing, begins another wait.
func TestGap(t *testing.T) {
	s := overGaps(t)
	r := s.region(make([]byte, 1000), remoteAll)
	placed := func(at uint64) { s.arrives(at, write(r.STag(), 100*at, numbered(100))) }
	s.advance(gapTime) // nothing is missing
	placed(1)
	s.advance(gapTime - 1)
	placed(3) // which is not the one
	placed(0)
	s.advance(gapTime - 1)
	s.wantState(RTS)
	s.advance(1)
	s.wantGap(2)

	s = overGaps(t)
	r = s.region(make([]byte, 1000), remoteAll)
	placed(1)
	placed(0)
	s.advance(10 * gapTime)
	s.wantState(RTS)
}

// TestGapBeforeTheEnd: the same where only the end of the peer's half has come.
func TestGapBeforeTheEnd(t *testing.T) {
	s := overGaps(t)
	s.ends(1)
	s.advance(gapTime - 1)
	s.wantState(RTS)
	s.advance(1)
	s.wantGap(0)
}

// TestNoGapTime: without a bound there is none, and a connection that has ended waits for nothing.
func TestNoGapTime(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.arrives(1, send(1, nil))
	s.advance(time.Hour)
	s.wantState(RTS)

	s = overGaps(t)
	s.arrives(1, send(1, nil))
	s.Machine.Abort(nil)
	if at := s.Machine.Deadline(); !at.IsZero() {
		t.Errorf("a deadline at %v", at)
	}
}
