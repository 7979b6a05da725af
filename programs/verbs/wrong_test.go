//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
	"unsafe"
)

// TestRegisterNothing: as an iWARP device, a region of no octets is refused, as siw does, and in the guise of RoCE it is one, as with some devices of that.
func TestRegisterNothing(t *testing.T) {
	memory := make([]byte, 8)
	for roce, errno := range map[bool]syscall.Errno{false: syscall.EINVAL, true: fine} {
		p := newProgramWith(t, Config{RoCE: roce})
		_, _, _, got := p.d.RegisterMR(p.pd, unsafe.Pointer(&memory[0]), 0, 0, accessLocalWrite)
		want(t, "a region of nothing", got, errno)
	}
}
