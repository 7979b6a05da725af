package association_test

import (
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestMoved: what a session sends has moved, and what others of its association send and receive; what comes for it has not, as its
// peer could go on sending for ever.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a, b := connect(t, active, passive)
		c, d := connect(t, active, passive)
		synctest.Wait()
		all := []*association.Session{a, b, c, d}
		for from, to := range map[*association.Session]*association.Session{a: b, b: a} {
			var before [4]uint64
			for i, s := range all {
				before[i] = s.Moved()
			}
			_, err := flood(from, 1)
			testrig.Must(t, err)
			receives(t, to, 1, 1)
			synctest.Wait()
			for i, s := range all {
				grown := s.Moved() - before[i]
				if s == to && grown != 0 || s != to && (grown < fair || grown > fair+100) { // with what stands in front of a segment
					t.Errorf("session %d has moved %d octets more, of %d that came for it: %t", i, grown, fair, s == to)
				}
			}
		}
	})
}
