package transfer

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestOnDisk has the disk fail: no file gets its name, and no directory is complete, before it is known to be on disk.
func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	testrig.Must(t, err)
	defer root.Close()
	s := sink{root: root, dir: ".", dirs: true}
	testrig.Must(t, root.Mkdir("old", 0o700))
	leave := func(name string) error { return s.leave(message.Offer{Kind: message.Leave, Mode: 0o700, Path: name}) }
	for what, f := range map[string]func() error{
		"a file":                     func() error { return s.receives("f", 0o600) },
		"one that is read only":      func() error { return s.receives("g", 0o400) },
		"a directory that was there": func() error { return errors.Join(s.enter("old"), leave("old")) },
		"one that is made":           func() error { return errors.Join(s.enter("new"), leave("new")) },
		"all names":                  func() error { return s.sync(s.dir) },
	} {
		if err := withoutDisk(t, f); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %v", what, err)
		}
	}
	lists(t, dir, "old", "new")
}

// receives has an empty file come.
func (s *sink) receives(name string, mode uint32) error {
	p, err := s.openPart(name)
	if err != nil {
		return err
	}
	defer p.drop()
	return p.complete(name, message.Offer{Kind: message.File, Mode: mode, Path: name}, false)
}

// withoutDisk calls f on a thread of its own, for which each fsync fails.
func withoutDisk(t *testing.T, f func() error) error {
	t.Helper()
	var refused error
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and the thread ends with this
		if refused = failSync(); refused != nil {
			ended <- nil
			return
		}
		ended <- f()
	}()
	err := <-ended
	if refused != nil {
		t.Skipf("no seccomp: %v", refused)
	}
	return err
}

// failSync has each fsync of this thread fail, as of a disk that is broken.
func failSync() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FSYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
