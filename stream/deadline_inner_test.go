package stream

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline sets one direction's deadline, and ends it for good: no time puts that off.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadline
		d.init()
		defer d.end()
		wantEnded := func(what string, ended bool) {
			t.Helper()
			synctest.Wait()
			if (d.context().Err() != nil) != ended {
				t.Errorf("%s: calls go on: %v", what, ended)
			}
		}
		for what, before := range map[string]time.Duration{"now": 0, "a second ago": time.Second} {
			d.set(time.Now().Add(-before))
			wantEnded(what, true)
			d.set(time.Time{})
			wantEnded("never", false)
		}
		d.set(time.Now().Add(time.Minute))
		d.end()
		wantEnded("ended", true)
		d.set(time.Time{})
		wantEnded("never, once it has ended", true)
		time.Sleep(time.Hour)
		d.set(time.Now().Add(time.Minute))
		wantEnded("later, once it has ended", true)
	})
}
