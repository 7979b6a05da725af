package iwarp

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestLeavesToWhoWaits: where somebody waits who does not receive for itself, a consumer that leaves has the socket ring for the receiving goroutine, however
// often consumers have come. Where nobody does, it leaves that to a timer, so that it does not cost a system call each time.
func TestLeavesToWhoWaits(t *testing.T) {
	qp, socket := leadable(t)
	lead := func() bool {
		qp.leadFor(t.Context(), new(nap))
		return rings(t, socket)
	}
	for ctx := testrig.Within(t); lead(); { // until it is steady, and the timer has not just run out
		testrig.Must(t, ctx.Err())
	}
	qp.callers.Add(1)
	for range 100 {
		if !lead() {
			t.Fatal("what arrives next waits for a timer")
		}
	}
}

// rings reports whether what arrives at a socket wakes who waits for the bell of internal/tcp: that is an epoll set which is told once.
func rings(t *testing.T, socket *net.TCPConn) bool {
	t.Helper()
	raw, err := socket.SyscallConn()
	testrig.Must(t, err)
	var fd int
	testrig.Must(t, raw.Control(func(n uintptr) { fd = int(n) }))
	all, err := os.ReadDir("/proc/self/fdinfo")
	testrig.Must(t, err)
	for _, f := range all {
		info, _ := os.ReadFile("/proc/self/fdinfo/" + f.Name()) // others may be closed meanwhile
		for line := range strings.Lines(string(info)) {
			var of int
			var events uint32
			if n, _ := fmt.Sscanf(line, "tfd: %d events: %x", &of, &events); n == 2 && of == fd && events&unix.EPOLLONESHOT != 0 {
				return events&unix.EPOLLIN != 0
			}
		}
	}
	t.Fatal("the socket is in no set that is told once")
	return false
}
