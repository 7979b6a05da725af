package iwarp_test

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// TestAcceptStack: a goroutine with 4 KiB of stack comes to RTS with it. With one frame more the runtime would walk through all of
// them, for each connection, to copy them to a stack of 8 KiB.
func TestAcceptStack(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes more stack")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would make stacks smaller
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln := listen(t, iwarp.ListenConfig{PD: res.pd})
	moved := make(chan bool)
	go func() {
		takeStack(0)
		before := where()
		req, err := ln.Accept(t.Context())
		should(t, err)
		_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
		should(t, err)
		moved <- where() != before
	}()
	d := iwarp.Dialer{PD: ini.pd}
	_, err := d.Dial(t.Context(), "tcp", ln.Addr().String())
	should(t, err)
	if <-moved {
		t.Error("the stack has grown")
	}
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
