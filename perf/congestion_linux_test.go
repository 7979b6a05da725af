package perf

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCCNotAllowed: where a congestion control takes a right, that is what is said, and what there is without it.
func TestCCNotAllowed(t *testing.T) {
	allowed, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if err != nil {
		t.Skip(err)
	}
	err = ccError(responder, "cubic", os.NewSyscallError("setsockopt", unix.EPERM))
	for _, want := range []string{"root or CAP_NET_ADMIN",
		"tcp_allowed_congestion_control, which has " + strings.Join(strings.Fields(string(allowed)), ", ")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: nothing of %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "this system has") {
		t.Errorf("%v: what is there may not be allowed", err)
	}
}
