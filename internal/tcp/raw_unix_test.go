//go:build unix

package tcp

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestWaitingKeepsNothing waits for bytes, and looks at the memory of that.
func TestWaitingKeepsNothing(t *testing.T) {
	c, peer := pair(t)
	done := make(chan error)
	go func() {
		err := c.Recv()
		c.Done()
		done <- err
	}()
	waits := func() bool {
		c.rx.mu.Lock()
		defer c.rx.mu.Unlock()
		return c.raw.readErr == syscall.EAGAIN
	}
	for ctx := testrig.Within(t); !waits(); runtime.Gosched() {
		testrig.Must(t, ctx.Err())
	}
	if keepsBuffer(c) {
		t.Error("it has a buffer")
	}
	sendAll(t, peer, []byte("x"))
	testrig.Must(t, <-done)
}
