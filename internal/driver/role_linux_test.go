package driver

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestLeavesToWhoWaits: where somebody waits who does not receive for itself, a consumer that leaves has the socket
// ring for the receiving goroutine, however often consumers have come. Where nobody does, it leaves that to a timer, so
// that it does not cost a system call each time.
func TestLeavesToWhoWaits(t *testing.T) {
	e, socket := leadable(t)
	lead := func() bool {
		e.ReceiveFor(t.Context(), new(nap))
		return rings(t, socket)
	}
	for ctx := testrig.Within(t); lead(); { // until it is steady, and the timer has not just run out
		testrig.Must(t, ctx.Err())
	}
	e.awaited.Store(true)
	for range 100 {
		if !lead() {
			t.Fatal("what arrives next waits for a timer")
		}
	}
}

// rings reports whether what arrives at a socket wakes who waits for the bell of internal/tcp: that is an epoll set
// which is told once.
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
			n, _ := fmt.Sscanf(line, "tfd: %d events: %x", &of, &events)
			if n == 2 && of == fd && events&unix.EPOLLONESHOT != 0 {
				return events&unix.EPOLLIN != 0
			}
		}
	}
	t.Fatal("the socket is in no set that is told once")
	return false
}

// TestPollerSuppressesWakeUps: what arrives wakes nobody while a consumer polls, unless somebody waits. Who begins to
// wait ends that.
func TestPollerSuppressesWakeUps(t *testing.T) {
	e, socket := leadable(t)
	wakesFrom := func() (bytes int) {
		t.Helper()
		raw, err := socket.SyscallConn()
		testrig.Must(t, err)
		testrig.Must(t, raw.Control(func(fd uintptr) {
			bytes, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT)
		}))
		testrig.Must(t, err)
		return bytes
	}
	poll := func() {
		for range 600 {
			e.Poll()
		}
	}
	suppressed := func() { // there is a timer, too, for a poller that rests
		t.Helper()
		for ctx := testrig.Within(t); wakesFrom() == 1; poll() {
			testrig.Must(t, ctx.Err())
		}
	}
	suppressed()
	e.awaited.Store(true)
	if e.RearmReads(); wakesFrom() != 1 {
		t.Error("what arrives does not wake who waits")
	}
	if poll(); wakesFrom() != 1 {
		t.Error("wake-ups are suppressed with one who waits")
	}
	e.awaited.Store(false)
	suppressed()
	if e.ReceiveFor(t.Context(), new(nap)); wakesFrom() != 1 {
		t.Error("what arrives does not wake the consumer that receives")
	}
}
