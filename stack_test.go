package iwarp_test

import (
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// TestAcceptStack: a goroutine with 4 KiB of stack comes to RTS with it. With one frame more the runtime would walk through all of
// them, for each connection, to copy them to a stack of 8 KiB. What happens once, and what the runtime does now and then where memory
// is allocated, take stack, too: of many goroutines one has to keep its stack, which none does where our frames are too large. The test
// looks at a process of its own, where the runtime neither begins with larger stacks, as it does where others are large, nor makes any
// smaller.
func TestAcceptStack(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes more stack")
	}
	if os.Getenv(stackChild) == "" {
		self, err := os.Executable()
		must(t, err)
		c := exec.CommandContext(within(t), self, "-test.run=^TestAcceptStack$")
		c.Env = append(os.Environ(), stackChild+"=1", "GOGC=off", "GODEBUG=adaptivestackstart=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln := listen(t, iwarp.ListenConfig{PD: res.pd})
	for range 50 {
		if !acceptGrows(t, ini, ln) {
			return
		}
	}
	t.Error("the stack has grown each time")
}

// stackChild tells a process that it is the one to be looked at.
const stackChild = "IWARP_TEST_STACK"

// acceptGrows reports whether a goroutine that accepts a connection has got a larger stack.
func acceptGrows(t *testing.T, ini *end, ln *iwarp.Listener) bool {
	t.Helper()
	moved := make(chan bool, 1)
	go func() {
		takeStack(0)
		before := where()
		req, err := ln.Accept(t.Context())
		if err == nil {
			_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
		}
		moved <- where() != before
		should(t, err)
	}()
	d := iwarp.Dialer{PD: ini.pd}
	_, err := d.Dial(t.Context(), "tcp", ln.Addr().String())
	must(t, err)
	return <-moved
}

// takeStack makes a stack of 2 KiB one of 4 KiB.
//
//go:noinline
func takeStack(i int) byte {
	var room [5 << 8]byte
	return room[i]
}

// where is an address on the stack, which differs when that has been copied.
//
//go:noinline
func where() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}
