//go:build unix

package iwarp_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
)

// oneDescriptor leaves the process a single descriptor until the function that it returns is called.
func oneDescriptor(t *testing.T) (restore func()) {
	t.Helper()
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	last, err := os.Open(os.DevNull)
	must(t, err)
	files := []*os.File{last}
	few := limit
	few.Cur = min(few.Cur, like(few.Cur, last.Fd()+8))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	for err == nil {
		if last, err = os.Open(os.DevNull); err == nil {
			files = append(files, last)
		}
	}
	must(t, files[0].Close())
	return func() {
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		for _, f := range files[1:] {
			_ = f.Close()
		}
	}
}

// like returns n in the type of another number: that of limits is signed on some systems.
func like[T int64 | uint64](_ T, n uintptr) T { return T(n) }

// TestLastDescriptor: a connection that has got the last descriptor stays. That there is none for another one says nothing, as long as nobody else comes.
func TestLastDescriptor(t *testing.T) {
	on := listenTCP(t)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", on.Addr().String())
	must(t, err)
	defer c.Close()
	restore := oneDescriptor(t)
	ln := iwarp.NewListener(on, iwarp.ListenConfig{})
	until(t, func() bool { return strings.Contains(stacks(), ".outOfDescriptors(") || ln.Stats().Evicted > 0 }, "a Listener without descriptors")
	restore()
	if s := ln.Stats(); s.Evicted != 0 || s.HalfOpen != 1 {
		t.Errorf("counted %+v", s)
	}
	must(t, ln.Close())
}
