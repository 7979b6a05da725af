package serve

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestFailuresLogged has one client cut many connections: of a second there is one line, and it counts the others.
func TestFailuresLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{})
		for range 10 {
			_ = r.visits().Abort()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		r.logged("left_out=8")
		if n := strings.Count(r.log.String(), "connection failed"); n != 2 {
			t.Errorf("%d lines:\n%s", n, r.log)
		}
		r.stop()
		testrig.Must(t, <-r.ended)
	})
}
