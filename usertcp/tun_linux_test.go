package usertcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// inNamespace runs f in a network namespace of its own, with a TUN device there whose own address is 198.51.100.1. What
// f does in its goroutine, such as making sockets, it does there. Without the privileges the test is skipped.
func inNamespace(t *testing.T, f func(tun *TUN)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network namespace with a TUN device takes root")
	}
	done := make(chan string)
	go func() {
		skip := ""
		defer func() { done <- skip }()
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			skip = "no network namespace: " + err.Error()
			return
		}
		tun, err := OpenTUN("iwarp%d")
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
			skip = err.Error()
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		if err := testrig.SetUpTUN(tun.Name()); err != nil {
			t.Errorf("%s: %v", tun.Name(), err)
			return
		}
		f(tun)
	}()
	if skip := <-done; skip != "" {
		t.Skip(skip)
	}
}

// TestKernel has a stack talk to the kernel's TCP, as the one that dials and as the one that accepts.
func TestKernel(t *testing.T) {
	inNamespace(t, func(tun *TUN) {
		if tun.MTU() != 1500 {
			t.Errorf("MTU %d", tun.MTU())
		}
		s, err := New(Config{Link: tun, Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.2")}})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		kernel, err := net.Listen("tcp", "198.51.100.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		defer kernel.Close()
		ours, err := s.Listen(context.Background(), "tcp", ":7174")
		if err != nil {
			t.Error(err)
			return
		}
		defer ours.Close()
		out, err := s.DialContext(context.Background(), "tcp", kernel.Addr().String())
		in, err2 := kernel.Accept()
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
			return
		}
		exchange(t, out.(*Conn), in)
		in, err = net.Dial("tcp", "198.51.100.2:7174")
		out, err2 = ours.Accept()
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
			return
		}
		exchange(t, out.(*Conn), in)
	})
}

// exchange sends a stream both ways between a stack and the kernel, and ends both.
func exchange(t *testing.T, ours *Conn, kernel net.Conn) {
	t.Helper()
	stream := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{2}).Read(stream)
	done := make(chan error, 4)
	received := func(c net.Conn) error {
		got, err := io.ReadAll(c)
		if err == nil && !bytes.Equal(got, stream) {
			err = errors.New("other bytes have arrived")
		}
		return err
	}
	if ours.EMSS() < 1400 || ours.EMSS() > 1460 {
		t.Errorf("EMSS %d", ours.EMSS())
	}
	go func() { done <- received(ours) }()
	go func() { done <- received(kernel) }()
	go func() {
		_, err := kernel.Write(stream)
		done <- errors.Join(err, kernel.(*net.TCPConn).CloseWrite())
	}()
	go func() {
		var err error
		for rest := stream; len(rest) > 0 && err == nil; {
			var n int
			n, err = ours.WriteFPDUs([][]byte{rest[:min(ours.EMSS(), len(rest))]})
			rest = rest[n:]
		}
		done <- errors.Join(err, ours.CloseWrite())
	}()
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(ours.Close(), kernel.Close()); err != nil {
		t.Error(err)
	}
}

// TestTUNName: a name that cannot be is refused with what it may be.
func TestTUNName(t *testing.T) {
	inNamespace(t, func(*TUN) {
		for name, want := range map[string]string{"averyveryverylongname": "at most 15 bytes",
			"lo": "of another kind"} {
			if _, err := OpenTUN(name); !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestTUNClose: a TUN may be closed twice, and leaves no descriptor behind.
func TestTUNClose(t *testing.T) {
	inNamespace(t, func(*TUN) {
		free := func() (fds [4]int) { // the first descriptors that are
			for i := range fds {
				fd, err := unix.Dup(0)
				if err != nil {
					t.Error(err)
				}
				defer unix.Close(fd)
				fds[i] = fd
			}
			return fds
		}
		before := free()
		tun, err := OpenTUN("iwarp%d")
		if err != nil {
			t.Error(err)
			return
		}
		if err := errors.Join(tun.Close(), tun.Close()); err != nil {
			t.Error(err)
		}
		if after := free(); after != before {
			t.Errorf("the first descriptors that are free are %d, and were %d", after, before)
		}
	})
}
