package iwarp_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestMain fails if a goroutine of the package is left when all tests are over.
func TestMain(m *testing.M) {
	code := testrig.Run(m)
	if left := leaked(soon); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the goroutines of the package that do not end in time.
func leaked(limit time.Duration) (left string) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if left = ours(); left == "" {
			return ""
		}
	}
	return left
}

// ours returns the stacks of goroutines that the package has started.
func ours() string {
	b := make([]byte, 4<<20)
	var all []string
	for stack := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(stack, "\ngithub.com/goiwarp/iwarp.") && !strings.Contains(stack, "iwarp_test") {
			all = append(all, stack)
		}
	}
	return strings.Join(all, "\n\n")
}

func goroutines() int { return strings.Count(ours(), "created by") }

// TestGoroutines counts them: at most two for each connection, one on an idle one,
// and none when it has ended.
func TestGoroutines(t *testing.T) {
	until(t, func() bool { return goroutines() == 0 }, "the end of what other tests have left")
	const pairs = 10
	var ends []*end
	for range pairs {
		ini, res := connect(t)
		works(t, ini, res)
		ends = append(ends, ini, res)
	}
	listeners := pairs // one for each, which the test closes when it is over
	until(t, func() bool { return goroutines() == 2*pairs+listeners }, "one goroutine for each end")
	for i, e := range ends {
		end := e.Close
		if i%4 == 0 {
			end = e.Abort
		}
		_ = end()
	}
	until(t, func() bool { return goroutines() == listeners }, "no goroutine")
}

// TestBlockedSender has a sender that waits for its peer: two goroutines, and no
// third.
func TestBlockedSender(t *testing.T) {
	res, p := respondToPeer(t, iwarp.QPConfig{})
	until(t, func() bool { return goroutines() == 2 }, "the receiver and the listener")
	src := res.mr(1<<20, 0)
	for range 60 {
		res.post(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, 1<<20)}, Remote: iwarp.Remote{STag: 5}})
	}
	for range 100 {
		p.send(p.write(1, 0, nil))
	}
	if n := goroutines(); n > 3 {
		t.Errorf("%d goroutines:\n%s", n, ours())
	}
	_ = res.Abort()
}
