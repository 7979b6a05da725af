//go:build interop && linux

package align_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// The ends of the link: A begins connections, and its interface is captured on.
const (
	addrA = "10.98.76.1"
	addrB = "10.98.76.2"
)

// A link is a veth pair between two network namespaces.
type link struct {
	a, b side
}

// A side is a namespace with its end of the link.
type side struct {
	netns, device string
}

// need asks for root and for commands.
func need(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		testrig.Lacks(t, "network namespaces need root")
	}
	for _, name := range []string{"ip", "tcpdump"} {
		if _, err := exec.LookPath(name); err != nil {
			testrig.Lacks(t, "not installed here: "+name)
		}
	}
}

// newLink makes a link of an MTU. Without offloads the sender's interface gets segments as
// they are on the wire.
func newLink(t testing.TB, mtu int, offloads bool) *link {
	t.Helper()
	need(t)
	l := &link{newSide(t, "a"), newSide(t, "b")}
	wire(t, l.a, l.b, mtu)
	for i, s := range []side{l.a, l.b} {
		ip(t, "-n", s.netns, "addr", "add", []string{addrA, addrB}[i]+"/24", "dev", s.device)
		ip(t, "-n", s.netns, "link", "set", s.device, "up")
		testrig.Must(t, s.do(noLossProbes))
		if !offloads {
			testrig.Must(t, s.do(func() error { return noOffloads(s.device) }))
		}
	}
	return l
}

// newSide makes a namespace, of which the end of the link is still to be made.
func newSide(t testing.TB, name string) side {
	t.Helper()
	s := side{fmt.Sprintf("iwarp-align-%d-%s", os.Getpid(), name), "wire-" + name}
	if out, err := exec.Command("ip", "netns", "add", s.netns).CombinedOutput(); err != nil {
		testrig.Lacks(t, fmt.Sprintf("no network namespaces here: %s", out))
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", s.netns).Run() })
	return s
}

// wire makes a veth pair.
func wire(t testing.TB, a, b side, mtu int) {
	t.Helper()
	ip(t, "link", "add", a.device, "netns", a.netns, "mtu", fmt.Sprint(mtu), "type", "veth",
		"peer", "name", b.device, "netns", b.netns, "mtu", fmt.Sprint(mtu))
}

// noLossProbes turns off TCP's tail loss probes. When the peer's window is full and its end
// says nothing for two round trips, as on a machine with more to do than processors, a probe
// sends what just fits into the window, within a segment, and TCP_CORK does not keep it from
// that.
func noLossProbes() error {
	return os.WriteFile("/proc/sys/net/ipv4/tcp_early_retrans", []byte("0"), 0)
}

// ip runs the command.
func ip(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %s", strings.Join(args, " "), out)
	}
}

// do runs f in the namespace. Sockets that it opens stay there.
func (s side) do(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
		fd, err := unix.Open("/run/netns/"+s.netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			_ = unix.Close(fd)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// noOffloads has the interface take and give segments as they are on the wire.
func noOffloads(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)                            //nolint:errcheck // nothing was written
	const setTSO, setGSO, setGRO = 0x1f, 0x24, 0x2c // of linux/ethtool.h
	for _, command := range []uint32{setTSO, setGSO, setGRO} {
		value := struct{ command, data uint32 }{command, 0}
		request := struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}{data: unsafe.Pointer(&value)}
		copy(request.name[:unix.IFNAMSIZ-1], device)
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
			uintptr(unsafe.Pointer(&request))); e != 0 {
			return fmt.Errorf("offload %#x of %s: %w", command, device, e)
		}
	}
	return nil
}
