package transfer

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// refusing calls f on a thread of its own, which the system refuses some calls.
func refusing(t *testing.T, errno unix.Errno, f func(), calls ...uint32) {
	t.Helper()
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for _, nr := range calls {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and the thread ends with the goroutine
		testrig.Should(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		testrig.Should(t, unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
			uintptr(unsafe.Pointer(&fprog)), 0, 0))
		f()
	}()
	<-ended
}

// TestLacks has a file system refuse a mode or a time, as vfat does: files and directories are there all the same, and
// what they lack is said. Other errors are errors.
func TestLacks(t *testing.T) {
	modes, times := []uint32{unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2}, []uint32{unix.SYS_UTIMENSAT}
	for _, c := range []struct {
		calls []uint32
		errno unix.Errno
		code  message.Code
		text  string
	}{
		{modes, unix.EPERM, message.OK, "its mode is not that of the source: operation not permitted"},
		{modes, unix.ENOTSUP, message.OK, "its mode is not that of the source: operation not supported"},
		{times, unix.EINVAL, message.OK, "its time is not that of the source: invalid argument"},
		{modes, unix.EIO, message.Failed, "input/output error"},
		{times, unix.EIO, message.Failed, "input/output error"},
	} {
		for _, mode := range []uint32{0o644, 0o444} {
			p, dir := newPart(t)
			s := sink{root: p.root, dir: ".", dirs: true}
			testrig.Must(t, s.make(message.Offer{Kind: message.Directory, Path: "d"}))
			refusing(t, c.errno, func() {
				a := answerOf(p.complete("f", message.Offer{Kind: message.File, Path: "f", Mode: mode}, false))
				if a.Code != c.code || a.Text != c.text {
					t.Errorf("file: %d, %q", a.Code, a.Text)
				}
				a = answerOf(s.make(message.Offer{Kind: message.Leave, Path: "d", Mode: mode | 0o100}))
				if a.Code != c.code || a.Text != c.text {
					t.Errorf("directory: %d, %q", a.Code, a.Text)
				}
			}, c.calls...)
			if c.code == message.OK {
				lists(t, dir, "f", "d")
			}
		}
	}
}

// TestFarTimes has files and directories of a time that cannot be given to them have the nearest, and both ends be
// told.
func TestFarTimes(t *testing.T) {
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		made(t, randomBytes(10, 71), r.from(way), "f", "x")
		far := make([]unix.Timespec, 2)
		for i := range far {
			reflect.ValueOf(&far[i].Sec).Elem().SetInt(14831769600) // 2440, and sooner on 32 bits
		}
		for _, name := range []string{filepath.Join("f", "x"), "f"} {
			testrig.Must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(r.from(way), name), far, 0))
		}
		if info, err := os.Stat(filepath.Join(r.from(way), "f")); err != nil || info.ModTime().Year() != 2440 {
			t.Skipf("this file system has no such time: %v", err)
		}
		var err error
		if way == "put" {
			err = r.put("f", recursive)
		} else {
			err = r.get("f", recursive)
		}
		testrig.Must(t, err)
		var said []string
		for _, e := range r.told {
			if o, ok := e.(*Outcome); ok {
				said = append(said, o.Error())
			}
		}
		const text = ": copied: its time is 2262-04-11, which is as near as can be"
		if len(said) != 2 || !strings.HasSuffix(said[0], `f/x"`+text) || !strings.HasSuffix(said[1], `f"`+text) {
			t.Errorf("%s: %q", way, said)
		}
		for _, name := range []string{filepath.Join("f", "x"), "f"} {
			if info, err := os.Stat(filepath.Join(r.to(way), name)); err != nil || !info.ModTime().Equal(lastTime) {
				t.Errorf("%s: %v, %v", name, info.ModTime(), err)
			}
		}
	}
	if got := timeOf(message.Offer{Seconds: -1 << 62}); !got.Equal(firstTime) || got.Year() != 1677 {
		t.Errorf("long ago is %v", got)
	}
	if got := timeOf(message.Offer{Seconds: 1, Nanoseconds: 2}); !got.Equal(time.Unix(1, 2)) {
		t.Errorf("got %v", got)
	}
}
