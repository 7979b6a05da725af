package sctpudp

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestAssure: the peer is told four times what has come, with pauses of half a round trip, or of 100 ms if that is not
// known.
func TestAssure(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			active, passive, r := recorded(t)
			pause := 100 * time.Millisecond
			if known {
				testrig.Must(t, passive.Send(terminate)) // which is acknowledged at once
				<-active.messages
				time.Sleep(time.Second)
				pause = 10 * time.Millisecond
			}
			began := time.Now()
			passive.Assure()
			if took := time.Since(began); took != 3*pause {
				t.Errorf("it took %v", took)
			}
			after, tsns := r.since(began)
			if want := []time.Duration{0, pause, 2 * pause, 3 * pause}; !slices.Equal(after, want) {
				t.Errorf("SACKs left after %v, want %v", after, want)
			}
			for _, tsn := range tsns {
				if tsn != passive.path.theirs.TSN {
					t.Errorf("one acknowledges %d, want %d", tsn, passive.path.theirs.TSN)
				}
			}
		})
	}
}

// TestAssureLeaves: it waits until the last packet has left, however long that takes, as who closes then takes the
// socket away.
func TestAssureLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, passive, r := recorded(t)
		r.slow.Store(int64(20 * time.Millisecond))
		began := time.Now()
		passive.Assure()
		r.slow.Store(0)
		if after, _ := r.since(began); len(after) != assurances {
			t.Errorf("SACKs left after %v", after)
		}
	})
}

// TestAssureOver: it ends with the association, and does not begin where the peer has ended that in order.
func TestAssureOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, passive, r := recorded(t)
		began := time.Now()
		time.AfterFunc(150*time.Millisecond, func() { passive.Abort("enough") })
		passive.Assure()
		if took := time.Since(began); took != 150*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if after, _ := r.since(began); len(after) != 2 {
			t.Errorf("SACKs left after %v", after)
		}

		_, passive, r = recorded(t)
		passive.path.noteCause(lowerlayer.ErrShutdown)
		began = time.Now()
		passive.Assure()
		if after, _ := r.since(began); len(after) > 0 || time.Since(began) > 0 {
			t.Errorf("after SHUTDOWN it took %v, and %d SACKs", time.Since(began), len(after))
		}
	})
}
