package iwarp_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// A movedStream shares its path with others, and tells how much that has carried.
type movedStream struct {
	iwarp.SegmentStream
	octets atomic.Uint64
}

func (s *movedStream) Moved() uint64 { return s.octets.Load() }

// TestMovedSince: what a shared path carries while a Close waits gives that more time. What it had carried before the Close began
// does not.
func TestMovedSince(t *testing.T) {
	for _, c := range []struct {
		before, since uint64 // octets
		want          time.Duration
	}{
		{0, 0, 3 * time.Second},
		{1 << 20, 0, 3 * time.Second},
		{1 << 20, 16<<10 - 1, 3 * time.Second},
		{1 << 20, 16 << 10, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
			ini.QP = create(t, ini.pd, iwarp.QPConfig{CloseTimeout: 3 * time.Second})
			res.QP = create(t, res.pd, iwarp.QPConfig{HalfClose: true}) // which does not close
			a, b := newShuffled(1, nil)
			path := &movedStream{SegmentStream: a}
			must(t, ini.ModifyRTSOver(path, negotiated(mpa.RoleInitiator), nil))
			must(t, res.ModifyRTSOver(b, negotiated(mpa.RoleResponder), nil))
			path.octets.Add(c.before)
			began := time.Now()
			time.AfterFunc(time.Second, func() { path.octets.Add(c.since) })
			err := ini.Close()
			if took := time.Since(began); took != c.want || !errors.Is(err, iwarp.ErrConnectionLost) {
				t.Errorf("%d octets before, %d since: Close took %v, want %v: %v", c.before, c.since, took, c.want, err)
			}
			_ = res.Abort()
		})
	}
}
