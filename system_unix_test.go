//go:build unix

package iwarp_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"golang.org/x/sys/unix"
)

// oneDescriptor leaves the process a single descriptor until the function that it returns is called.
func oneDescriptor(t *testing.T) (restore func()) {
	t.Helper()
	var limit syscall.Rlimit
	rig.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	last, err := os.Open(os.DevNull)
	rig.Must(t, err)
	files := []*os.File{last}
	few := limit
	few.Cur = min(few.Cur, like(few.Cur, last.Fd()+8))
	rig.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	for err == nil {
		if last, err = os.Open(os.DevNull); err == nil {
			files = append(files, last)
		}
	}
	rig.Must(t, files[0].Close())
	return func() {
		rig.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		for _, f := range files[1:] {
			_ = f.Close()
		}
	}
}

// like returns n in the type of another number: that of limits is signed on some systems.
func like[T int64 | uint64](_ T, n uintptr) T { return T(n) }

// TestLastDescriptor: a connection that has got the last descriptor stays. That there is none for another one says
// nothing, as long as nobody else comes.
func TestLastDescriptor(t *testing.T) {
	on := rig.ListenTCP(t)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", on.Addr().String())
	rig.Must(t, err)
	defer c.Close()
	restore := oneDescriptor(t)
	ln := new(iwarp.ListenConfig).NewListener(on)
	rig.Until(t, func() bool { return strings.Contains(rig.Stacks(), ".outOfDescriptors(") || ln.Stats().Evicted > 0 },
		"a Listener without descriptors")
	restore()
	if s := ln.Stats(); s.Evicted != 0 || s.HalfOpen != 1 {
		t.Errorf("counted %+v", s)
	}
	rig.Must(t, ln.Close())
}

// descriptors asks for as many open descriptors as the system allows and returns
// how many those are.
func descriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	l.Cur = l.Max
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	}
	return int(min(uint64(l.Cur), 1<<30)) //nolint:unconvert // it is signed on some systems
}

// maxSegment asks TCP for its effective maximum segment size.
func maxSegment(t testing.TB, c net.Conn) (n int) {
	t.Helper()
	rc, err := c.(*net.TCPConn).SyscallConn()
	rig.Must(t, err)
	_ = rc.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) })
	rig.Must(t, err)
	return n
}

// TestMappedMemory registers memory that is not Go's, in all the ways that there are, and gives it back to
// the system after Deregister: nothing touches it then.
func TestMappedMemory(t *testing.T) {
	const n = 1 << 16
	pages, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	rig.Must(t, err)
	ini, res := rig.Connect(t)
	mr, err := res.PD.RegisterOptions(pages, iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteRead,
		Base: 1 << 44})
	rig.Must(t, err)
	back := ini.MR(3000, iwarp.LocalWrite)
	rig.WriteAndRead(t, ini, ini.Filled(3000, 1, 0), back, mr)
	w, fast := allocMW(res, iwarp.MWType2), allocFast(res, 1, n)
	binds(res, w, iwarp.Binding{Memory: mr.Slice(n-8, 8), Access: iwarp.RemoteWrite})
	writesTo(t, ini, res, "by the w", w.Remote(0), w.STag())
	registers(res, fast, iwarp.Registration{Memory: [][]byte{pages[:8]}, Access: iwarp.RemoteWrite, Private: true})
	writesTo(t, ini, res, "by a req", fast.Remote(0), fast.STag())
	if string(pages[:8]) != "by a req" || string(pages[n-8:]) != "by the w" {
		t.Errorf("%q %q", pages[:8], pages[n-8:])
	}
	rig.Must(t, fast.Deregister())
	rig.Must(t, mr.Deregister())
	rig.Must(t, syscall.Munmap(pages))
	refusedWrite(t, ini, res, mr.Remote(0), 0x1100)
}
